//! Invalid input: each case gets its numbered fault, and other clients aren't affected.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{ECHO, House, counted, echo, message, rest, short};

const META: &str = "https://xml-pipeline.org/ns/meta/v1";
const CORE: &str = "https://xml-pipeline.org/ns/core/v1";

/// Sends `bytes` and nothing more, without an end. The pump says `code`, with `place` where it has
/// one, and ends the connection; a neighbour who was there before is served after.
async fn ends(bytes: impl AsRef<[u8]>, code: &str, place: &str) {
    let house = House::new(|_| {}).await;
    let mut neighbour = house.client().await;
    neighbour.tell(&echo("before")).await.unwrap();
    let mut stream = house.stream().await;
    stream.write_all(bytes.as_ref()).await.unwrap();
    let mut text = Vec::new();
    stream.read_to_end(&mut text).await.unwrap();
    let text = String::from_utf8_lossy(&text);
    let what = String::from_utf8_lossy(&bytes.as_ref()[..bytes.as_ref().len().min(80)]);
    assert!(text.contains(&format!("code=\"{code}\"{place}")), "{what}: {text}");
    assert_eq!(text.matches("<huh").count(), 1, "{what}: {text}");
    neighbour.tell(&echo("after")).await.unwrap();
}

/// Sends `bytes`, then a good message: the pump says `code`, and answers the second as ever.
async fn goes_on(bytes: &str, code: &str) {
    let house = House::new(|_| {}).await;
    let mut client = house.client().await;
    client.push_raw(bytes.as_bytes());
    client.push_raw(ECHO.as_bytes());
    client.finish().await.unwrap();
    let heard = rest(&mut client).await;
    assert_eq!(short(&heard), format!("{code} + echo"), "{bytes}: {heard:?}");
}

#[tokio::test]
async fn what_is_no_xml_ends_the_connection_with_its_place() {
    ends("GET / HTTP/1.1\r\n\r\n", "P0022", "").await;
    ends("\u{0}\u{0}\u{0}\u{0}", "P0022", "").await;
    ends("<a>\n<b></c>\n</a>", "P0001", " column=\"4\" line=\"2\"").await;
    ends("<a b=c></a>", "P0001", " column=\"6\" line=\"1\"").await;
    ends(b"<a>\xFF</a>", "P0002", " column=\"4\" line=\"1\"").await;
    ends("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "P0003", "").await;
    ends("<a>&b;</a>", "P0001", "").await;
    ends("<a><?php echo 1 ?></a>", "P0004", " column=\"4\" line=\"1\"").await;
    ends("<b:a></b:a>", "P0005", "").await;
    ends(format!("{ECHO} and"), "P0022", " column=\"1\" line=\"1\"").await;
}

#[tokio::test]
async fn a_wrong_length_ends_the_connection() {
    ends([0, 0xFF, 0xFF, 0xFF], "P0006", "").await;
    ends([counted(ECHO), vec![0xFF; 4]].concat(), "P0006", "").await;
    ends(counted("<a/><b/>"), "P0001", "").await;
    ends([counted(ECHO), vec![0; 4]].concat(), "P0022", "").await;
}

#[tokio::test]
async fn two_roots_are_two_messages() {
    let house = House::new(|_| {}).await;
    let text = house.exchange(format!("{ECHO}{ECHO}").as_bytes()).await;
    assert_eq!(text.matches("<accepted ").count(), 2, "{text}");
    assert_eq!(text.matches("<text>hello</text>").count(), 2, "{text}");
}

#[tokio::test]
async fn too_much_ends_the_connection() {
    ends(format!("<a>{}", " ".repeat(1 << 20)), "P0006", "").await;
    ends("<a>".repeat(129), "P0006", "").await;
    let attributes: String = (0..129).map(|it| format!(" a{it}=''")).collect();
    ends(format!("<a{attributes}/>"), "P0006", "").await;
}

#[tokio::test]
async fn a_wrong_message_keeps_the_connection() {
    let add = |a: &str| {
        let namespace = "https://xml-pipeline.org/ns/echo/v1";
        format!("<add xmlns=\"{namespace}\"><a>{a}</a><b>2</b></add>")
    };
    goes_on(&add("one"), "P0007").await;
    goes_on("<echo xmlns='urn:other'><text>hello</text></echo>", "P0011").await;
    goes_on("<nobody xmlns='urn:x'/>", "P0011").await;
    goes_on("<nobody/>", "P0011").await;
    goes_on(&message("<from>somebody</from>", ECHO), "P0009").await;
    goes_on(&message("<to>adder</to>", ECHO), "P0011").await;
    goes_on(&message("<to>nobody</to>", ECHO), "P0011").await;
    goes_on(&message("<thread>sess-00000000</thread>", ECHO), "?").await;
    goes_on(&message("", ""), "P0008").await;
    goes_on(&message("<no>x</no>", ECHO), "P0008").await;
    goes_on(&message(&format!("<id>{}</id>", "x".repeat(129)), ECHO), "P0006").await;
    let core = "https://xml-pipeline.org/ns/core/v1";
    goes_on(&message(&format!("<entry xmlns='{core}'/>"), ECHO), "P0010").await;
    goes_on(&format!("<accepted xmlns='{core}' seq='1' thread='x'/>"), "P0010").await;
    goes_on("<done/>", "P0010").await;
    goes_on("<huh/>", "P0010").await;
    goes_on(&format!("<huh xmlns='{core}'/>"), "P0010").await;
    goes_on(&message("", &format!("<done xmlns='{core}'/>")), "P0010").await;
}

#[tokio::test]
async fn a_thread_is_its_openers_and_its_error_names_it() {
    let house = House::new(|_| {}).await;
    let text = message("<thread>a&lt;b&gt;&quot;&amp;</thread>", ECHO);
    let text = house.exchange(text.as_bytes()).await;
    let expected = "<system-thread-error xmlns=\"https://xml-pipeline.org/ns/core/v1\" \
         code=\"unknown_thread\" \
         message=\"Unknown thread; emit &lt;spawn-thread/> to create.\" \
         unknown_id=\"a&lt;b>&quot;&amp;\"></system-thread-error>";
    assert!(text.contains(expected), "{text}");
    assert!(!text.contains("<thread>"), "{text}");
}

#[tokio::test]
async fn half_a_message_is_told_at_its_end() {
    let house = House::new(|_| {}).await;
    for half in ["<echo><te", "\u{0}\u{0}\u{0}\u{9}<echo>", "\u{0}\u{0}"] {
        let text = house.exchange(half.as_bytes()).await;
        assert!(text.contains("code=\"P0023\" column="), "{half:?}: {text}");
    }
    let text = house.exchange(format!("{ECHO}\n <half").as_bytes()).await;
    let order = [text.find("<accepted "), text.find("code=\"P0023\"")];
    assert!(order[0].is_some() && order[0] < order[1], "{text}");
    assert!(text.contains("<text>hello</text>"), "{text}");
}

#[tokio::test]
async fn an_answer_repeats_no_more_than_200_characters_of_what_came() {
    let house = House::new(|_| {}).await;
    let long = "x".repeat(30_000);
    let core = |what: &str| message("", &format!("<{what} xmlns=\"{CORE}\"/>"));
    let add = |what: &str| {
        message("", &format!("<add xmlns=\"https://xml-pipeline.org/ns/echo/v1\">{what}</add>"))
    };
    for push in [
        message(&format!("<from>{long}</from>"), ECHO),
        message(&format!("<thread>{long}</thread>"), ECHO),
        message(&format!("<to>{long}</to>"), ECHO),
        message(&format!("<id>{long}</id>"), ECHO),
        message(&format!("<{long}/>"), ECHO),
        message(&format!("<id {long}=\"\"/>"), ECHO),
        message("", &format!("<{long} xmlns=\"urn:x\"/>")),
        message("", &format!("<a xmlns=\"urn:{long}\"/>")),
        add(&format!("<a>{long}</a><b>1</b>")),
        add(&format!("<{long}/>")),
        add(&format!("<a {long}=\"1\">1</a><b>1</b>")),
        add(&format!("<a>1</a><b>1</b>{long}")),
        message("", &format!("<request-schema xmlns=\"{META}\" payload=\"{long}\"/>")),
        message("", &format!("<request-prompt xmlns=\"{META}\" payload=\"{long}\"/>")),
        core(&format!("authenticate token=\"{long}\"")),
        core(&format!("follow thread=\"{long}\"")),
        core(&format!("describe name=\"{long}\"")),
        core(&format!("cancel-thread thread=\"{long}\"")),
        core(&format!("clear-timer timer=\"{long}\"")),
        core(&format!("set-timer cron=\"{long}\"")),
        core(&format!("set-timer in=\"{long}\"")),
        core(&format!("todo-complete id=\"{long}\"")),
        core(&format!("raise-budget key=\"{long}\" by=\"1\"")),
        core(&format!("await-threads mode=\"{long}\"")),
        format!("<?xml version=\"1.0\" encoding=\"{long}\"?><a/>"),
        format!("<?{long} ?><a/>"),
        format!("<a>&{long};</a>"),
        format!("<a></{long}>"),
        long.clone(),
    ] {
        let told = house.exchange(push.as_bytes()).await;
        let longest = told.split(|it| it != 'x').map(str::len).max().unwrap_or(0);
        assert!(longest <= 200, "{longest} of {}: {}", &push[..120], &told[..told.len().min(600)]);
    }
}
