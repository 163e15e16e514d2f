//! Words that come again and again, kept once.

use std::collections::HashMap;
use std::sync::Arc;

/// The number of a word in [`Names`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Name(pub u32);

/// Words and their numbers: equal words have equal numbers.
///
/// ```
/// let mut names = paceline_trace::Names::default();
/// let draw = names.number("draw");
/// assert_eq!(names.number("draw"), draw);
/// assert_eq!(names.word(draw), "draw");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    words: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, Name>,
}

impl Names {
    /// The number of a word, a new one if it was never seen.
    pub fn number(&mut self, word: &str) -> Name {
        if let Some(&name) = self.numbers.get(word) {
            return name;
        }
        let name = Name(u32::try_from(self.words.len()).unwrap_or(u32::MAX));
        let word: Arc<str> = word.into();
        self.words.push(Arc::clone(&word));
        self.numbers.insert(word, name);
        name
    }

    /// The number of a word that was seen.
    pub fn find(&self, word: &str) -> Option<Name> {
        self.numbers.get(word).copied()
    }

    /// The word with this number; empty for a number of other names.
    pub fn word(&self, name: Name) -> &str {
        self.words.get(name.0 as usize).map_or("", |word| &**word)
    }

    /// All words, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|word| &**word)
    }

    /// The number of words.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there are no words.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

impl<'w> FromIterator<&'w str> for Names {
    fn from_iter<T: IntoIterator<Item = &'w str>>(words: T) -> Names {
        let mut names = Names::default();
        for word in words {
            names.number(word);
        }
        names
    }
}
