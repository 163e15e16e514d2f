//! Pictures for the document: one for each row, as SVG.
//!
//! A picture shows the samples, which the tables do not; of many samples a few evenly spaced ones. A subject
//! has the same colour in all pictures. Controls are hollow or dashed, in the colour of their subject.

mod samples;
mod strips;
mod tails;

use console::plot::{BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, Wrong, text};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::case::{Case, Picture};
use super::report::Report;
use super::row::Row;
use super::who::Who;

const WIDTH: u32 = 900;
/// The height of the line at the top with the row's title.
const TITLE: u32 = 34;
/// The height of the line above a panel.
const CAPTION: u32 = 24;
/// The height of the numbers at the axis, below a panel.
const TICKS: u32 = 30;

/// A picture for every row with a drawn case, as SVG.
pub(super) fn pictures(report: &Report) -> Result<Vec<(&'static Row, String)>, Wrong> {
    let mut pictures = Vec::new();
    for &row in &report.rows {
        let cases = report.cases.iter().filter(|case| case.row == row.name);
        let cases: Vec<&Case> = cases.filter(|case| height(case) > 0).collect();
        if !cases.is_empty() {
            pictures.push((row, picture(row, &cases)?));
        }
    }
    Ok(pictures)
}

fn picture(row: &Row, cases: &[&Case]) -> Result<String, Wrong> {
    let mut svg = String::new();
    let height = TITLE + cases.iter().map(|case| height(case)).sum::<u32>();
    let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
    root.fill(&WHITE)?;
    let title = format!("{}: {}", row.name, row.title.replace('`', ""));
    let style = text(17, HPos::Left).color(&BLACK);
    root.draw(&Text::new(title, (12, TITLE as i32 / 2), style))?;
    let mut rest = root.split_vertically(TITLE).1;
    for case in cases {
        let (panel, below) = rest.split_vertically(self::height(case));
        match case.picture {
            Picture::Strips => strips::draw(&panel, case)?,
            Picture::Tails => tails::draw(&panel, case)?,
            Picture::None => {}
        }
        rest = below;
    }
    root.present()?;
    drop((rest, root));
    Ok(svg)
}

/// The height of a case's panel; 0 if it is not drawn.
fn height(case: &Case) -> u32 {
    match case.picture {
        _ if case.scores.is_empty() => 0,
        Picture::Strips => strips::height(case),
        Picture::Tails => tails::HEIGHT,
        Picture::None => 0,
    }
}

/// The colour of a subject.
fn colour(who: Who) -> RGBColor {
    match who {
        Who::Serial | Who::SerialBeside => RGBColor(90, 90, 90),
        // The floors. A row has at most one of them.
        Who::Floor | Who::PlainThreads => RGBColor(150, 150, 150),
        Who::Paceline
        | Who::PacelineIdempotent
        | Who::PacelineUnsteered
        | Who::PacelineSpinning
        | Who::PacelineUnsliced
        | Who::PacelineQuiet
        | Who::PacelineBuilt
        | Who::PacelineCritical
        | Who::PacelineQueue
        | Who::PacelineChecked
        | Who::PacelineAlone
        | Who::PacelineHalf
        | Who::PacelineUnasked => BLUE,
        Who::RayonTwoPools => ORANGE,
        Who::Rayon | Who::RayonSpinning | Who::RayonPinned => VERMILION,
        Who::RayonMember => ORANGE,
        Who::Chili => GREEN,
        Who::Bevy => PURPLE,
        Who::Tbb => SKY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            name: "row",
            title: "of `work` & <nothing>",
            means: "",
            measure: |_| Ok(Vec::new()),
        }
    }

    fn case(label: &str) -> Case {
        let samples = [
            (Who::Paceline, vec![1_000.0, 2_000.0, 1_500.0]),
            (Who::RayonPinned, vec![400_000.0, 3_000.0]),
        ];
        Case::new("row", label, "ns per job", samples)
    }

    /// Goal: a picture has the row's title, each panel's caption, each subject's name and result in a fitting
    /// unit, and a dot for every sample. Method: two panels, texts that XML must escape.
    #[test]
    fn a_picture_has_all_its_parts() {
        let (one, two) = (case("first"), case("second"));
        let svg = picture(&row(), &[&one, &two]).unwrap();
        for part in [
            "of work &amp; &lt;nothing&gt;",
            "first",
            "second",
            "µs per job",
            "rayon, pinned",
            "1.50",
        ] {
            assert!(svg.contains(part), "{part} is missing in {svg}");
        }
        assert_eq!(svg.matches("<circle").count(), 10);
        assert!(svg.trim_end().ends_with("</svg>") && !svg.contains("NaN"));
    }

    /// Goal: many samples make no large file, and the caption has the number of drawn ones. Method: a
    /// thousand samples.
    #[test]
    fn of_many_samples_a_few_are_drawn() {
        let samples: Vec<f64> = (1..=1_000).map(f64::from).collect();
        let case = Case::new("row", "", "ns", [(Who::Chili, samples)]);
        let svg = picture(&row(), &[&case]).unwrap();
        assert_eq!(svg.matches("<circle").count(), strips::DOTS);
        let caption = format!("{} of 1000 samples each", strips::DOTS);
        assert!(svg.contains(&caption), "{svg}");
    }

    /// Goal: tails are lines, one for each subject, with its name. Method: a case drawn that way.
    #[test]
    fn tails_are_lines_with_names() {
        let case = case("").with_picture(Picture::Tails);
        let svg = picture(&row(), &[&case]).unwrap();
        for part in ["paceline", "rayon, pinned", "1 %"] {
            assert!(svg.contains(part), "{part} is missing in {svg}");
        }
        assert!(!svg.contains("<circle") && !svg.contains("NaN"));
    }

    /// Goal: odd samples are drawn, too. Method: nothing but zeros; one sample.
    #[test]
    fn odd_samples_can_be_drawn() {
        for samples in [vec![0.0, 0.0], vec![7.0], vec![0.0, 1e9]] {
            for picture_of in [Picture::Strips, Picture::Tails] {
                let case = Case::new("row", "", "ns", [(Who::Chili, samples.clone())]);
                let svg = picture(&row(), &[&case.with_picture(picture_of)]).unwrap();
                assert!(svg.contains("chili") && !svg.contains("NaN"), "{samples:?}");
            }
        }
    }

    /// Goal: subjects differ in colour. Method: the colours of all judged ones.
    #[test]
    fn judged_subjects_have_colours_of_their_own() {
        let all = [
            Who::Serial,
            Who::Floor,
            Who::Paceline,
            Who::Rayon,
            Who::RayonMember,
            Who::Chili,
            Who::Bevy,
            Who::Tbb,
        ];
        for (index, &a) in all.iter().enumerate() {
            for &b in &all[..index] {
                assert_ne!(colour(a), colour(b), "{a:?} and {b:?}");
            }
        }
    }
}
