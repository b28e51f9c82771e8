//! The load over time, a panel for each policy.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::model::{END, OUTAGE_END, OUTAGE_START, Policy, Run, SECOND, Second, capacity};
use super::{grouped, recovery};

const SIZE: (u32, u32) = (800, 1149);
const HEAD: u32 = 104;
const COLUMNS: usize = 2;
/// How many seconds make one point of a line: a panel has about two pixels for each. With more
/// points the picture would be the largest file of the package.
const SECONDS_A_POINT: usize = 8;

const INK: RGBColor = RGBColor(36, 41, 47);
const PALE: RGBColor = RGBColor(101, 109, 118);
const GRID: RGBColor = RGBColor(229, 232, 236);
const OUTAGE: RGBColor = RGBColor(244, 238, 232);
const SENT: RGBColor = RGBColor(247, 183, 119);
const SENT_EDGE: RGBColor = RGBColor(226, 132, 43);
const ANSWERED: RGBColor = RGBColor(72, 133, 196);

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub fn draw(
    path: &str,
    policies: &[Policy],
    runs: &[Run],
    clients: u32,
) -> Result<(), Box<dyn Error>> {
    let canvas = SVGBackend::new(path, SIZE).into_drawing_area();
    canvas.fill(&WHITE)?;
    let (head, body) = canvas.split_vertically(HEAD);
    draw_head(&head, clients)?;
    let panels = body.split_evenly((policies.len().div_ceil(COLUMNS), COLUMNS));
    for (panel, (policy, run)) in panels.iter().zip(policies.iter().zip(runs)) {
        draw_panel(panel, policy, run, capacity(clients))?;
    }
    canvas.present()?;
    Ok(())
}

fn draw_head(area: &Canvas<'_>, clients: u32) -> Result<(), Box<dyn Error>> {
    let title = format!(
        "A ten-minute outage for {} clients, and ten ways to retry",
        grouped(clients.into())
    );
    area.draw(&Text::new(title, (16, 16), bold(19, &INK)))?;
    let scale = "Requests a second, in multiples of what the service can answer; each line of the \
                 grid is ten times the one below.";
    area.draw(&Text::new(scale, (16, 44), plain(12, &PALE)))?;

    const TOP: i32 = 70;
    let mut x = 16;
    for (text, color, width) in [
        ("reach the service", SENT, 140),
        ("answered", ANSWERED, 94),
        ("outage", OUTAGE, 84),
    ] {
        let swatch = [(x, TOP), (x + 14, TOP + 12)];
        area.draw(&Rectangle::new(swatch, color.filled()))?;
        area.draw(&Text::new(text, (x + 20, TOP), plain(12, &INK)))?;
        x += width;
    }
    let capacity = vec![(x, TOP + 6), (x + 24, TOP + 6)];
    area.draw(&PathElement::new(capacity, INK.stroke_width(1)))?;
    let text = "what the service can answer";
    area.draw(&Text::new(text, (x + 30, TOP), plain(12, &INK)))?;
    Ok(())
}

fn draw_panel(
    area: &Canvas<'_>,
    policy: &Policy,
    run: &Run,
    capacity: f64,
) -> Result<(), Box<dyn Error>> {
    const FLOOR: f64 = 0.1;
    const CEILING: f64 = 400.0;
    let minutes = |seconds: u32| (f64::from(seconds) - f64::from(OUTAGE_START / SECOND)) / 60.0;

    area.draw(&Text::new(policy.name, (16, 0), bold(14, &INK)))?;
    let recovers = match run.recovery() {
        None => "does not recover".to_owned(),
        Some(_) => format!("recovers in {}", recovery(run)),
    };
    let lost = match run.lost {
        0 => "no request".to_owned(),
        lost => format!("{} requests", grouped(lost)),
    };
    let result = format!("{recovers}, {lost} given up");
    area.draw(&Text::new(result, (16, 18), plain(12, &PALE)))?;

    let mut chart = ChartBuilder::on(area)
        .margin_top(40)
        .margin_right(24)
        .margin_bottom(22)
        .x_label_area_size(20)
        .y_label_area_size(44)
        .build_cartesian_2d(
            minutes(0)..minutes(END / SECOND),
            (FLOOR..CEILING).log_scale(),
        )?;
    let outage = [
        (minutes(OUTAGE_START / SECOND), FLOOR),
        (minutes(OUTAGE_END / SECOND), CEILING),
    ];
    chart.draw_series([Rectangle::new(outage, OUTAGE.filled())])?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(PALE)
        .x_labels(5)
        .x_label_formatter(&|minute| format!("{minute} min"))
        .y_labels(4)
        .y_label_formatter(&|load| format!("{load}×"))
        .label_style(plain(11, &PALE))
        .draw()?;

    let points = |load: fn(&[Second]) -> f64| {
        let points = run.seconds.chunks(SECONDS_A_POINT).enumerate();
        points.map(move |(index, seconds)| {
            let minute = minutes((index * SECONDS_A_POINT) as u32);
            (minute, (load(seconds) / capacity).max(FLOOR))
        })
    };
    // A crowd comes within one second, and is to be seen.
    let sent = points(|seconds| {
        seconds
            .iter()
            .map(|second| f64::from(second.sent))
            .fold(0.0, f64::max)
    });
    let answered = points(|seconds| {
        let answered: u32 = seconds.iter().map(|second| second.answered).sum();
        f64::from(answered) / seconds.len() as f64
    });
    let sent = AreaSeries::new(sent, FLOOR, SENT.filled());
    chart.draw_series(sent.border_style(SENT_EDGE.stroke_width(1)))?;
    chart.draw_series(AreaSeries::new(answered, FLOOR, ANSWERED.filled()))?;
    let line = [(minutes(0), 1.0), (minutes(END / SECOND), 1.0)];
    chart.draw_series(LineSeries::new(line, INK.stroke_width(1)))?;
    Ok(())
}

fn plain(size: u32, color: &RGBColor) -> TextStyle<'static> {
    let top = Pos::new(HPos::Left, VPos::Top);
    ("sans-serif", size).into_font().color(color).pos(top)
}

fn bold(size: u32, color: &RGBColor) -> TextStyle<'static> {
    let top = Pos::new(HPos::Left, VPos::Top);
    let font = ("sans-serif", size).into_font().style(FontStyle::Bold);
    font.color(color).pos(top)
}
