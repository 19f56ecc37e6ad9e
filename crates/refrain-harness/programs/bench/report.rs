//! The result: a table of ratios, or one JSON object per line.

/// The limit for a ratio.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
    /// No limit: the figure is context.
    Open,
}

/// How a figure is printed.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Unit {
    /// A quotient of two measurements of this run.
    Times,
    /// A share of one core.
    Core,
    /// Context, not a ratio.
    PerSecond,
}

/// One figure, with a value for each repetition.
pub(crate) struct Figure {
    pub(crate) what: String,
    pub(crate) unit: Unit,
    pub(crate) values: Vec<f64>,
    pub(crate) target: Target,
    pub(crate) context: String,
}

struct Line {
    database: &'static str,
    figure: Figure,
}

pub(crate) struct Report {
    is_json: bool,
    settings: Vec<String>,
    lines: Vec<Line>,
}

impl Report {
    pub(crate) fn new(is_json: bool) -> Report {
        Report { is_json, settings: Vec::new(), lines: Vec::new() }
    }

    pub(crate) fn setting(&mut self, database: &str, text: &str) {
        self.settings.push(format!("{database}: {text}"));
    }

    pub(crate) fn add(&mut self, database: &'static str, figure: Figure) {
        eprintln!("   {}: {} ({})", figure.what, figure.shown(), figure.context);
        self.lines.push(Line { database, figure });
    }

    pub(crate) fn print(&self) {
        if self.is_json {
            for line in &self.lines {
                println!("{}", line.json());
            }
            return;
        }
        for setting in &self.settings {
            println!("{setting}");
        }
        println!("\n| database | measured | median (least–most) | target | | context |");
        println!("|---|---|---|---|---|---|");
        for Line { database, figure } in &self.lines {
            let (target, verdict) = (figure.target.shown(figure.unit), figure.verdict());
            println!(
                "| {database} | {} | {} | {target} | {verdict} | {} |",
                figure.what,
                figure.shown(),
                figure.context
            );
        }
    }
}

impl Line {
    fn json(&self) -> serde_json::Value {
        let Figure { what, unit, values, target, context } = &self.figure;
        serde_json::json!({
            "schema_version": 1,
            "database": self.database,
            "measured": what,
            "unit": match unit { Unit::Times => "ratio", Unit::Core => "share of a core", Unit::PerSecond => "per second" },
            "median": median(values),
            "values": values,
            "target": target.shown(*unit),
            "verdict": self.figure.verdict(),
            "context": context,
        })
    }
}

impl Figure {
    fn shown(&self) -> String {
        let show = |value: f64| match self.unit {
            Unit::Times => format!("{value:.2}"),
            Unit::Core => format!("{:.2}", value * 100.0),
            Unit::PerSecond => format!("{value:.0}"),
        };
        let unit = match self.unit {
            Unit::Times => "×",
            Unit::Core => " %",
            Unit::PerSecond => "/s",
        };
        let least = self.values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let spread = if self.values.len() > 1 {
            format!(" ({}–{})", show(least), show(most))
        } else {
            String::new()
        };
        format!("{}{unit}{spread}", show(median(&self.values)))
    }

    fn verdict(&self) -> &'static str {
        let value = median(&self.values);
        match self.target {
            Target::AtLeast(least) if value >= least => "met",
            Target::AtMost(most) if value <= most => "met",
            Target::Open => "",
            _ => "missed",
        }
    }
}

impl Target {
    fn shown(self, unit: Unit) -> String {
        let show =
            |value: f64| if unit == Unit::Core { format!("{} %", value * 100.0) } else { value.to_string() };
        match self {
            Target::AtLeast(value) => format!("≥ {}", show(value)),
            Target::AtMost(value) => format!("≤ {}", show(value)),
            Target::Open => String::new(),
        }
    }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    percentile(values, 0.5)
}

pub(crate) fn percentile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of a length is a place in it"
    )]
    let at = (part * sorted.len() as f64) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

/// The rates of Refrain and of the baseline, a pair for each repetition.
#[derive(Default)]
pub(crate) struct Pairs {
    ours: Vec<f64>,
    by_hand: Vec<f64>,
}

impl Pairs {
    pub(crate) fn push(&mut self, ours: f64, by_hand: f64) {
        self.ours.push(ours);
        self.by_hand.push(by_hand);
    }

    pub(crate) fn figure(self, what: String, enough: f64) -> Figure {
        let values = self.ours.iter().zip(&self.by_hand).map(|(ours, by_hand)| ours / by_hand).collect();
        let context = format!("{:.0}/s, by hand {:.0}/s", median(&self.ours), median(&self.by_hand));
        Figure { what, unit: Unit::Times, values, target: Target::AtLeast(enough), context }
    }
}
