//! PDFs that `fetch` gets: their text, and how broken and hostile PDFs are handled.

use std::process::Command;

use super::site::{Site, page};
use crate::program::{Ran, Scene};

/// A PDF of these objects, whose first is its catalogue.
fn pdf(objects: &[&[u8]]) -> Vec<u8> {
    let (mut file, mut places) = (b"%PDF-1.4\n".to_vec(), String::new());
    for (number, it) in (1..).zip(objects) {
        places += &format!("{:010} 00000 n \n", file.len());
        let head = format!("{number} 0 obj\n");
        file.extend([head.as_bytes(), it, b"\nendobj\n"].concat());
    }
    let (count, at) = (objects.len() + 1, file.len());
    let end = format!(
        "xref\n0 {count}\n0000000000 65535 f \n{places}\
         trailer\n<</Size {count}/Root 1 0 R>>\nstartxref\n{at}\n%%EOF\n"
    );
    file.extend(end.into_bytes());
    file
}

/// One of a page with these drawing instructions.
fn of_a_page(drawn: &str) -> Vec<u8> {
    let drawn = format!("<</Length {}>>stream\n{drawn}\nendstream", drawn.len());
    pdf(&[
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R\
          /Resources<</Font<</F 5 0 R>>>>>>",
        drawn.as_bytes(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ])
}

/// What `fetch` says of a file of this kind.
async fn fetched(kind: &'static str, file: Vec<u8>) -> Ran {
    let site = Site::one(page(kind, file)).await;
    let (host, url) = (site.host().to_string(), site.url("/a.pdf"));
    tokio::task::block_in_place(|| {
        let scene = Scene::new();
        scene.write(
            "organism.yaml",
            format!("listeners: [{{use: fetch, settings: {{hosts: [\"{host}\"]}}}}]\n"),
        );
        let server = scene.serve(&[]);
        let ns = "https://xml-pipeline.org/ns/fetch/v1";
        let ask = format!("<fetch xmlns=\"{ns}\"><url>{url}</url></fetch>\n");
        scene.pipe(&["send", "--connect", &server.address], &ask)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pdf_is_its_words() {
    let file = of_a_page("BT /F 12 Tf 20 100 Td (Tea is green.) Tj 0 -20 Td (So is grass.) Tj ET");
    for kind in ["application/pdf", ""] {
        let told = fetched(kind, file.clone()).await;
        told.says(&["<page ", "Tea is green.", "So is grass."]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pdf_without_text_or_that_is_none_says_so() {
    let scan = of_a_page("0 0 m 10 10 l S");
    fetched("application/pdf", scan).await.says(&["<refused ", "reason=\"wrong-kind\"", "no text"]);
    let mut half = of_a_page("BT /F 12 Tf (Tea) Tj ET");
    half.truncate(half.len() / 3);
    fetched("application/pdf", half).await.says(&["<refused ", "the PDF can't be read"]);
}

/// Pages that are their own children, and a stream that is a thousand times as long as its file.
#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_pdf_hurts_its_own_reader_alone() {
    let circle =
        pdf(&[b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2>>"]);
    fetched("application/pdf", circle).await.says(&["<refused ", "PDF"]);
    let make = "import sys, zlib\n\
                drawn = b'BT /F 9 Tf ' + b'(tea) Tj ' * 20_000_000\n\
                sys.stdout.buffer.write(zlib.compress(drawn, 9))";
    let Ok(made) = Command::new("python3").args(["-c", make]).output() else {
        return crate::skipped("no python3");
    };
    let head = format!("<</Length {}/Filter/FlateDecode>>stream\n", made.stdout.len());
    let stream = [head.as_bytes(), &made.stdout, b"\nendstream"].concat();
    let bomb = pdf(&[
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R\
          /Resources<</Font<</F 5 0 R>>>>>>",
        &stream,
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]);
    // On a busy machine, the reader's time may be over before its memory is.
    let told = fetched("application/pdf", bomb).await.says(&["<refused "]);
    let is_bounded = ["the reader gave up", "reading it takes more than"];
    assert!(is_bounded.iter().any(|it| told.out.contains(it)), "{told:?}");
}

/// The text of the encrypted PDFs.
const PLAIN: &str = "Tides follow the moon.";

/// Each was made of the same page, with a password of its owner and none of its readers.
#[tokio::test(flavor = "multi_thread")]
async fn a_pdf_with_an_empty_password_is_read() {
    for file in [
        &include_bytes!("pdf/rc4-128.pdf")[..],
        include_bytes!("pdf/aes-128.pdf"),
        include_bytes!("pdf/aes-256.pdf"),
    ] {
        fetched("application/pdf", file.to_vec()).await.says(&["<page ", PLAIN]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pdf_that_wants_a_password_is_told_as_such() {
    for file in [
        &include_bytes!("pdf/rc4-128-secret.pdf")[..],
        include_bytes!("pdf/aes-128-secret.pdf"),
        include_bytes!("pdf/aes-256-secret.pdf"),
    ] {
        let told = fetched("application/pdf", file.to_vec()).await;
        told.says(&["<refused ", "it is encrypted, and wants a password"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_ends_a_line() {
    let page = |text: &str| {
        let drawn = format!("BT /F 24 Tf 72 100 Td ({text}) Tj ET");
        format!("<</Length {}>>stream\n{drawn}\nendstream", drawn.len())
    };
    let (one, two) = (page("First slide"), page("Second slide"));
    let head = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Resources<</Font<</F 5 0 R>>>>";
    let file = pdf(&[
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R 4 0 R]/Count 2>>",
        format!("{head}/Contents 6 0 R>>").as_bytes(),
        format!("{head}/Contents 7 0 R>>").as_bytes(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        one.as_bytes(),
        two.as_bytes(),
    ]);
    let told = fetched("application/pdf", file).await;
    let lines = told.out.lines().map(str::trim).collect::<Vec<_>>();
    assert!(!lines.iter().any(|it| it.contains("slideSecond")), "{told:?}");
    told.says(&["First slide", "Second slide"]);
}

/// A font whose codes are numbers of glyphs, without a table of their characters.
#[tokio::test(flavor = "multi_thread")]
async fn text_whose_glyphs_have_no_characters_is_refused() {
    let of = |drawn: &str| {
        let drawn = format!("<</Length {}>>stream\n{drawn}\nendstream", drawn.len());
        pdf(&[
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R\
              /Resources<</Font<</G 5 0 R/F 8 0 R>>>>>>",
            drawn.as_bytes(),
            b"<</Type/Font/Subtype/Type0/BaseFont/G/Encoding/Identity-H/DescendantFonts[6 0 R]>>",
            b"<</Type/Font/Subtype/CIDFontType2/BaseFont/G/DW 500/FontDescriptor 7 0 R\
              /CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>>>",
            b"<</Type/FontDescriptor/FontName/G/Flags 4>>",
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        ])
    };
    let glyphs = "BT /G 12 Tf 20 100 Td <000100020003000400050006> Tj ET";
    let told = fetched("application/pdf", of(glyphs)).await;
    told.says(&["<refused ", "6 of its 6 glyphs have no character", "unreadable"]);
    let few = "BT /F 12 Tf 20 100 Td (Tea is as green as grass.) Tj /G 12 Tf <0001> Tj ET";
    let told = fetched("application/pdf", of(few)).await;
    told.says(&["<page ", "Tea is as green as grass.\u{fffd}"]);
}
