//! `use: documents`: which files of a folder are gathered, in which order, and which are left out.

use pumphouse::listeners::tool::documents::{Gather, Gathered, Refused, Settings, documents};
use pumphouse::{AskError, Payload as _};

use crate::program::Scene;

fn settings(scene: &Scene) -> Settings {
    Settings::new(scene.path("").to_str().unwrap())
}

async fn gather(
    settings: &Settings,
    paths: &[&str],
    max_tokens: Option<u64>,
) -> Result<Gathered, Refused> {
    let documents = documents(settings).unwrap();
    let pump = pumphouse::builder().with(documents).build().unwrap().start();
    let paths = paths.iter().map(ToString::to_string).collect();
    match pump.ask::<Gathered>(Gather { paths, max_tokens, format: None }).await {
        Ok(it) => Ok(it),
        Err(AskError::Other(it)) => Err(Refused::decode(&it).unwrap()),
        Err(error) => panic!("{error}"),
    }
}

fn library() -> Scene {
    let scene = Scene::new();
    scene.write("README.md", "# Tea\n\nBrews tea.\n");
    scene.write("docs/b.html", "<h1>Black</h1><script>x</script><p>Milk &amp; sugar</p>");
    scene.write("docs/a.txt", "Green.");
    scene.write("docs/.hidden", "secret");
    scene.write("docs/ignored.txt", "ignored");
    scene.write(".gitignore", "ignored.txt\n");
    scene.write("image.png", b"\x89PNG\0");
    scene
}

#[tokio::test]
async fn documents_stand_below_their_paths_in_the_order_of_the_request() {
    let scene = library();
    let gathered = gather(&settings(&scene), &["docs/", "README.md", "docs/a.txt"], None).await;
    let expected = "## docs/a.txt\n\nGreen.\n\n## docs/b.html\n\n# Black\n\nMilk & sugar\n\n\
                    ## README.md\n\n# Tea\n\nBrews tea.\n";
    assert_eq!(gathered.unwrap().text, expected);
}

#[tokio::test]
async fn without_paths_all_is_gathered_and_what_is_no_text_is_named() {
    let scene = library();
    let gathered = gather(&settings(&scene), &[], None).await.unwrap();
    assert_eq!((gathered.documents, gathered.left_out), (3, 1));
    assert!(gathered.text.ends_with("\n[Left out: image.png (no text)]\n"), "{gathered:?}");
    for word in ["secret", "ignored"] {
        assert!(!gathered.text.contains(word), "{gathered:?}");
    }
}

#[tokio::test]
async fn max_tokens_cuts_the_text_and_the_rest_is_counted() {
    let scene = library();
    let paths = ["README.md", "docs/"];
    let gathered = gather(&settings(&scene), &paths, Some(5)).await.unwrap();
    let expected = "## README.md\n\n# Tea\n[Content truncated]\n\n\
                    [Left out: docs/a.txt (no room), docs/b.html (no room)]\n";
    assert_eq!(gathered.text, expected);
    assert_eq!((gathered.documents, gathered.left_out), (1, 2));
}

#[tokio::test]
async fn limits_have_names_in_the_text() {
    let scene = library();
    scene.write("large.txt", "x".repeat(2_000));
    let mut settings = settings(&scene);
    settings.limits.file_bytes_max = 1_000;
    let gathered = gather(&settings, &["large.txt"], None).await.unwrap();
    assert_eq!(gathered.text, "\n[Left out: large.txt (file_bytes_max)]\n");
    settings.limits.files_max = 1;
    let gathered = gather(&settings, &["docs"], None).await.unwrap();
    assert!(gathered.text.ends_with("\n[There are more files than files_max]\n"), "{gathered:?}");
}

#[tokio::test]
async fn a_file_that_is_named_twice_counts_once_among_the_files() {
    let scene = library();
    let mut settings = settings(&scene);
    settings.limits.files_max = 1;
    let gathered = gather(&settings, &["README.md", "README.md"], None).await.unwrap();
    assert!(!gathered.text.contains("files_max"), "{gathered:?}");
}

#[tokio::test]
async fn a_path_out_of_the_folder_and_one_that_is_not_there_are_refused() {
    let scene = library();
    for (path, says) in [
        ("../etc", "leads out of the folder"),
        ("/etc", "leads out of the folder"),
        ("dosc", "there is no `dosc`; did you mean `docs`?"),
    ] {
        let refused = gather(&settings(&scene), &[path], None).await.unwrap_err();
        assert!(refused.text.contains(says), "{refused:?}");
    }
    std::os::unix::fs::symlink("/etc", scene.path("link")).unwrap();
    let refused = gather(&settings(&scene), &["link"], None).await.unwrap_err();
    assert!(refused.text.contains("leads out of the folder"), "{refused:?}");
    assert!(documents(&Settings::new("/nowhere")).err().unwrap().contains("/nowhere"));
}

/// Example 3 of the context feeds of seed 000, with the folder's own listener for `doc_aggregator`.
#[test]
fn the_example_of_document_ingestion_is_a_feed() {
    let scene = library();
    scene.write("docs/guide.md", "Warm the pot.\n");
    scene.write(
        "organism.yaml",
        format!(
            "models: {{m: {{use: scripted, file: replies.txt}}}}
listeners:
  - {{use: documents, name: doc_aggregator, settings: {{root: .}}}}
  - use: agent
    name: coder
    model: m
    context_feeds:
{}",
            super::seed_feeds::indented(include_str!("seed_000/documents.yaml"))
        ),
    );
    scene.write("replies.txt", "%% reply\n<response>$project_docs</response>\n");
    let all = super::asked(&scene, "What is there?");
    super::in_order(&all, &["## docs/guide.md", "Warm the pot.", "## README.md", "Brews tea."]);
}
