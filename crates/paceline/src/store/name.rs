//! The name of a job, an event or a frame, as a program gives it.

use std::borrow::Cow;
use std::fmt;

use platform::kept_name;

/// The name of a job, an event or a frame. Calls take anything that becomes one: a literal, or a `String`
/// that the program has made while it runs.
///
/// A literal costs nothing. A text made at run time is kept for as long as the process lives, because an
/// error may show it after the job system is gone. Each text is kept once, so a job that has the same name
/// every frame keeps one. To look it up is to hash it: that neither allocates nor blocks. A process keeps
/// [`NAMES_MAX`](crate::NAMES_MAX) different texts, of each the first 128 bytes. Further ones are shown as
/// [`Name::TOO_MANY`].
///
/// A borrowed text that may go away (a `&str` that is no literal) has to become a `String` first, with
/// `to_owned`: the type cannot tell how long it lives.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let systems: Vec<_> = (0..4)
///     .map(|number| js.job(format!("system {number}")).schedule(|_| ()))
///     .collect();
/// js.wait(js.job("frame").after_all(systems).schedule(|_| ()));
/// assert!(js.labels().iter().any(|label| label.name == "system 3"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Name(&'static str);

impl Name {
    /// The name of everything beyond the limit.
    ///
    /// ```
    /// assert_eq!(paceline::Name::TOO_MANY.as_str(), "(too many names)");
    /// ```
    pub const TOO_MANY: Name = Name("(too many names)");

    /// Its text.
    ///
    /// ```
    /// let name = paceline::Name::from(format!("system {}", 7));
    /// assert_eq!(name.as_str(), "system 7");
    /// ```
    #[inline]
    pub fn as_str(self) -> &'static str {
        self.0
    }

    fn kept(text: &str) -> Name {
        kept_name(text).map_or(Name::TOO_MANY, Name)
    }
}

impl From<&'static str> for Name {
    #[inline]
    fn from(text: &'static str) -> Name {
        Name(text)
    }
}

/// For iterators over literals.
impl From<&&'static str> for Name {
    #[inline]
    fn from(text: &&'static str) -> Name {
        Name(text)
    }
}

impl From<String> for Name {
    fn from(text: String) -> Name {
        Name::kept(&text)
    }
}

impl From<&String> for Name {
    fn from(text: &String) -> Name {
        Name::kept(text)
    }
}

impl From<Cow<'_, str>> for Name {
    fn from(text: Cow<'_, str>) -> Name {
        Name::kept(&text)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::Builder;

    use super::*;

    /// Goal: each call takes a name that was made at run time, and errors show it when the job system is
    /// gone. Method: one of each, without workers.
    #[test]
    fn names_made_at_run_time_outlive_the_job_system() {
        let js = Builder::small().workers(0).build().unwrap();
        let of_test = |what: &str| format!("{what} of this test");
        let job = js.job(of_test("job")).schedule(|_| panic!("as it should"));
        let panicked = js.try_wait(job);
        let (id, label) = {
            let frame = js.frame(of_test("frame"), Duration::ZERO);
            js.wait(frame.job(of_test("job of a frame")).schedule(|_| ()));
            (js.event(of_test("event")).id(), frame.label())
        };
        let abandoned = js.try_wait(id);
        js.scope(|scope| scope.try_spawn(of_test("job of a scope"), |_| ()))
            .unwrap();
        let labels = js.labels();
        drop(js);
        assert_eq!(label, "frame of this test");
        let shown = |error: Result<(), crate::WaitError>| error.unwrap_err().to_string();
        assert!(shown(panicked).starts_with("job 'job of this test' ("));
        assert!(shown(abandoned).starts_with("event 'event of this test' ("));
        for name in ["job of a frame of this test", "job of a scope of this test"] {
            assert!(labels.iter().any(|label| label.name == name), "{name}");
        }
    }

    /// Goal: a literal stays where it is, and each form of a text made at run time is the same name. Method:
    /// addresses.
    #[test]
    fn a_name_is_kept_once_and_a_literal_not_at_all() {
        let literal = "a name of this test";
        assert_eq!(Name::from(literal).as_str().as_ptr(), literal.as_ptr());
        assert_eq!(Name::from(&literal).as_str().as_ptr(), literal.as_ptr());
        let made = literal.to_owned();
        let names = [
            Name::from(&made),
            Name::from(Cow::Borrowed(&made[..])),
            Name::from(made),
        ];
        for name in names {
            assert_eq!(name, Name::from(literal));
            assert_ne!(name.as_str().as_ptr(), literal.as_ptr());
            assert_eq!(name.as_str().as_ptr(), names[0].as_str().as_ptr());
        }
    }
}
