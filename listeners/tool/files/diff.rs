//! Shows one change of a text as a unified diff of one hunk.

/// The number of unchanged lines that are shown before the change, and after it.
const AROUND: usize = 3;

/// Makes the hunk for a change at the byte `at`. A hunk of more than `most` bytes is cut.
pub(super) fn diff(before: &str, after: &str, at: usize, most: usize) -> String {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    // The lines before the change are equal in both texts, and so are the lines after it.
    let same = before[..at].bytes().filter(|it| *it == b'\n').count();
    let pairs = old[same..].iter().rev().zip(new[same..].iter().rev());
    let tail = pairs.take_while(|(a, b)| a == b).count();
    let head = old[same..old.len() - tail].iter().zip(&new[same..new.len() - tail]);
    let same = same + head.take_while(|(a, b)| a == b).count();
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    let from = same.saturating_sub(AROUND);
    let after_change = (old_end + AROUND).min(old.len());
    let (count_old, count_new) = (after_change - from, after_change - old_end + new_end - from);
    let mut text = format!(
        "@@ -{},{count_old} +{},{count_new} @@\n",
        from + usize::from(count_old > 0),
        from + usize::from(count_new > 0),
    );
    let mut line = |sign: char, line: &str| {
        text.push(sign);
        text.push_str(line.trim_end_matches(['\n', '\r']));
        text.push('\n');
    };
    old[from..same].iter().for_each(|it| line(' ', it));
    old[same..old_end].iter().for_each(|it| line('-', it));
    new[same..new_end].iter().for_each(|it| line('+', it));
    old[old_end..after_change].iter().for_each(|it| line(' ', it));
    cut(text, most)
}

/// Cuts a text of more than `most` bytes between two characters, and adds a line with `…`.
fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("\n…\n");
    }
    text
}
