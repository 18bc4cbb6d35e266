//! Mistakes in a manifest: what is wrong, where, and what would be right.

use std::borrow::Cow;
use std::fmt;

use crate::schema::nearest;

/// How many characters of a word a mistake repeats.
const ECHO_MAX: usize = 40;

/// One mistake in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mistake {
    /// Where the mistake is.
    pub place: Place,
    /// The keys that lead to the mistake, such as `doors[0].tcp`. Empty for the manifest itself.
    pub path: Box<str>,
    /// What is wrong, in a sentence.
    pub message: Box<str>,
    /// The right word that is most similar to the wrong one.
    pub nearest: Option<Box<str>>,
    /// A right value, as a manifest writes it.
    pub example: Option<Box<str>>,
    /// What to do about the mistake, if the example doesn't say so already.
    pub advice: Option<Box<str>>,
}

/// A place in a manifest, or in another file that is read in the same way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Place {
    /// The number of the file: 0 is the manifest, or another file that is read alone. The further
    /// files of a manifest, which are its pod files and its included files, count from 1.
    pub(super) file: usize,
    /// The number of the line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl Place {
    /// A place in a manifest, or in another file that is read alone.
    pub(super) const fn new(line: usize, column: usize) -> Place {
        Place { file: 0, line, column }
    }
}

impl Mistake {
    pub(super) fn new(place: Place, message: impl Into<Box<str>>) -> Mistake {
        let message = message.into();
        Mistake { place, path: Box::default(), message, nearest: None, example: None, advice: None }
    }

    pub(super) fn at(mut self, path: &str) -> Mistake {
        self.path = path.into();
        self
    }

    pub(super) fn example(mut self, example: impl Into<Box<str>>) -> Mistake {
        self.example = Some(example.into());
        self
    }

    pub(super) fn advice(mut self, advice: impl Into<Box<str>>) -> Mistake {
        self.advice = Some(advice.into());
        self
    }

    /// Adds the word of `right` that is most similar to `wrong`, and asks in the message whether it
    /// was meant. Adds nothing if no word is similar enough.
    pub(super) fn or_nearest<'a>(
        mut self,
        wrong: &str,
        right: impl IntoIterator<Item = &'a str>,
    ) -> Mistake {
        self.nearest = nearest(wrong, right.into_iter()).map(Box::from);
        if let Some(it) = &self.nearest {
            self.message = format!("{}; did you mean `{it}`?", self.message).into();
        }
        self
    }

    /// The advice, or else a text with the example. None if the mistake has neither.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        let shown = || self.example.as_ref().map(|it| format!("write it as in `{it}`"));
        self.advice.as_deref().map(str::to_owned).or_else(shown)
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mistake { place: Place { line, column, .. }, message, .. } = self;
        write!(f, "line {line}, column {column}: {message}")
    }
}

/// All mistakes of a manifest, or of a file that is read in the same way, such as a provider file.
/// Those of the manifest come first, then those of its pod files and included files. The mistakes
/// of a file are in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes {
    file: String,
    /// The further files of the manifest: its pod files and its included files.
    files: Vec<String>,
    all: Vec<Mistake>,
}

impl Mistakes {
    pub(super) fn new(file: &str, mut all: Vec<Mistake>) -> Mistakes {
        all.sort_by_key(|it| it.place);
        all.dedup();
        Mistakes { file: file.to_owned(), files: Vec::new(), all }
    }

    /// Sets the paths of the manifest's further files. The place of a mistake has a file's number.
    pub(super) fn with_files(self, files: Vec<String>) -> Mistakes {
        Mistakes { files, ..self }
    }

    /// Changes the texts of all mistakes, and the paths of their files.
    pub(super) fn with_texts(mut self, change: impl Fn(&str) -> String) -> Mistakes {
        let boxed = |it: &mut Box<str>| *it = change(it).into();
        self.file = change(&self.file);
        self.files.iter_mut().for_each(|it| *it = change(it));
        for it in &mut self.all {
            let texts = [&mut it.nearest, &mut it.example, &mut it.advice];
            texts.into_iter().flatten().chain([&mut it.path, &mut it.message]).for_each(boxed);
        }
        self
    }

    /// The path of the file, as messages show it.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The path of the file with the mistake: the manifest, or one of its further files.
    #[must_use]
    pub fn file_of(&self, mistake: &Mistake) -> &str {
        let further = mistake.place.file.checked_sub(1).and_then(|it| self.files.get(it));
        further.unwrap_or(&self.file)
    }

    /// Appends further advice to each mistake for which `advice` returns a text.
    #[must_use]
    pub fn advise(mut self, advice: impl Fn(&Mistake) -> Option<String>) -> Mistakes {
        for it in &mut self.all {
            if let Some(more) = advice(it) {
                it.advice =
                    Some(it.help().map_or(more.clone(), |it| format!("{it}; {more}")).into());
            }
        }
        self
    }

    /// All mistakes.
    #[must_use]
    pub fn all(&self) -> &[Mistake] {
        &self.all
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, it) in self.all.iter().enumerate() {
            let end = if number == 0 { "" } else { "\n" };
            let Mistake { place: Place { line, column, .. }, message, .. } = it;
            write!(f, "{end}{}:{line}:{column}: {message}", self.file_of(it))?;
            if let Some(help) = it.help() {
                write!(f, "\n  {help}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}

/// Shortens a longer word to [`ECHO_MAX`] characters and an ellipsis.
pub(super) fn cut(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(ECHO_MAX) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// Several words as part of a sentence: `a`, `b` and `c`.
pub(super) fn listed<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(|it| format!("`{it}`")).collect();
    match words.as_slice() {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}
