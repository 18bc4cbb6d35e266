//! Which parts of a reply are text, and which calls beside text run.

use super::tell::{check, config, whole};

#[test]
fn a_payload_counts_where_it_begins_a_line() {
    let call = "<calculate><e>1</e></calculate>";
    for before in ["", "  ", "- ", "> ", "2. ", "a\n", "<think>a</think> "] {
        let told = whole(&config(), &format!("{before}{call}"));
        assert_eq!(*told.last().unwrap(), format!("calculate {call}"), "{before}");
    }
    for before in ["a ", "The error says \"emit ", "<huh message=\"try ", "<huh a='\n"] {
        let text = format!("{before}{call}");
        check(&text, &[&format!("text: {text}")]);
    }
    check("<huh m=\"<action>{}</action>\"/>", &["text: <huh m=\"<action>{}</action>\"/>"]);
}

#[test]
fn a_tools_output_ends_with_its_tag_outside_of_code() {
    let text = "<tool_result>\n```\n</tool_result>\n<action>{}</action>\n```\n</tool_result>";
    let runs = format!("{text}<action>{{}}</action>");
    check(&runs, &[&format!("text: {text}"), "action type=tool mode=sync id=__auto_1 {}"]);
}

#[test]
fn a_call_behind_a_tag_that_is_spoken_of_runs() {
    let call = "<action id=\"q\">{}</action><response>It is ${q}.</response>";
    let ran = ["action id=q type=tool mode=sync {}", "<response", "response: It is ${q}."];
    for between in [" here. ", ", as said: ", " here.\n"] {
        let told = whole(&config(), &format!("I can use <action>{between}{call}"));
        assert!(told[1].starts_with("broken action 1:"), "{told:?}");
        assert_eq!(told[2..5], ran);
    }
    // But not in code.
    for code in ["`<action id=\"q\">{}</action>`", "\n```\n<action>{}</action>\n```\n"] {
        let told = whole(&config(), &format!("I can use <action> so: {code} {call}"));
        assert_eq!(told[2..5], ran);
    }
}

#[test]
fn a_hash_without_a_blank_begins_no_heading() {
    let text = "#foo `a\nb <action>{}</action>`";
    check(text, &[&format!("text: {text}")]);
}

#[test]
fn what_stands_in_a_comment_begins_no_code() {
    for before in ["<!-- ` -->", "a <!-- ` --> "] {
        let text = format!("{before}<action>{{}}</action>");
        check(&text, &[&format!("text: {before}"), "action type=tool mode=sync id=__auto_1 {}"]);
    }
}
