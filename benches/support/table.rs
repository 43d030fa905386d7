//! The one table that is printed.

use std::time::Duration;

/// What a row has to reach.
pub enum Target {
    /// The figure is at most so many times what it is compared with.
    AtMost(f64),
    /// The figure is at least so many times what it is compared with.
    AtLeast(f64),
    /// The figure is less than this.
    Below(Duration),
    /// The figure is at most so many KiB.
    KibibytesAtMost(f64),
    /// Nothing: the row is there to be read.
    Nothing,
}

/// A figure.
#[derive(Clone, Copy)]
pub enum Figure {
    /// How long something takes.
    Time(Duration),
    /// How many there are in a second.
    Rate(f64),
    /// How much memory something takes, in KiB.
    Kibibytes(f64),
}

impl Figure {
    fn number(self) -> f64 {
        match self {
            Self::Time(time) => time.as_secs_f64(),
            Self::Rate(rate) => rate,
            Self::Kibibytes(size) => size,
        }
    }
}

impl std::fmt::Display for Figure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = match self {
            Self::Time(time) if time.as_nanos() < 10_000 => format!("{} ns", time.as_nanos()),
            Self::Time(time) => format!("{:.1} µs", time.as_secs_f64() * 1e6),
            Self::Rate(rate) if *rate < 10_000.0 => format!("{rate:.0} /s"),
            Self::Rate(rate) => format!("{:.0} k/s", rate / 1e3),
            Self::Kibibytes(size) => format!("{size:.1} KiB"),
        };
        formatter.pad(&text)
    }
}

/// Prints the head of the table.
pub fn head() {
    println!(
        "{:<44}  {:<34}  {:>9}  {:>9}  {:>7}  {:>9}",
        "what", "against", "figure", "against", "ratio", "target"
    );
}

/// Prints one row, as soon as it is known.
pub fn row(what: &str, figure: Figure, against: Option<(&str, Figure)>, target: &Target) {
    let ratio = against.map(|(_, floor)| figure.number() / floor.number());
    let (target, reached) = match target {
        Target::AtMost(most) => (format!("≤ {most} ×"), ratio.map(|ratio| ratio <= *most)),
        Target::AtLeast(least) => (format!("≥ {least} ×"), ratio.map(|ratio| ratio >= *least)),
        Target::Below(time) => {
            (format!("< {} µs", time.as_micros()), Some(figure.number() < time.as_secs_f64()))
        }
        Target::KibibytesAtMost(most) => (format!("≤ {most} KiB"), Some(figure.number() <= *most)),
        Target::Nothing => ("–".to_owned(), None),
    };
    let (name, floor) =
        against.map_or(("–", "–".to_owned()), |(name, floor)| (name, floor.to_string()));
    let ratio = ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2} ×"));
    let verdict = match reached {
        Some(true) => "ok",
        Some(false) => "short",
        None => "",
    };
    println!("{what:<44}  {name:<34}  {figure:>9}  {floor:>9}  {ratio:>7}  {target:>9}  {verdict}");
}
