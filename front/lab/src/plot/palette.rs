//! Colours that people with any colour vision can tell apart, and the assignment of names to colours in a report.

use std::collections::HashMap;

use plotters::style::RGBColor;

/// A colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

impl Colour {
    pub(super) fn rgb(self) -> RGBColor {
        RGBColor(self.0, self.1, self.2)
    }

    /// As HTML writes it.
    pub fn hex(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }

    /// The same hue, dark enough to be read on white: a contrast of 4.5 to 1 (WCAG 2.2, criterion 1.4.3).
    pub(super) fn for_text(self) -> Self {
        let darken = |colour: &Self| {
            let part = |part: u8| (u16::from(part) * 9 / 10) as u8;
            Some(Self(part(colour.0), part(colour.1), part(colour.2)))
        };
        let mut shades = core::iter::successors(Some(self), darken).take(32);
        shades.find(|shade| 1.05 / (shade.luminance() + 0.05) >= 4.5).unwrap_or(Self(0, 0, 0))
    }

    /// Relative luminance of sRGB, from 0 to 1 (WCAG 2.2).
    fn luminance(self) -> f64 {
        let linear = |part: u8| {
            let share = f64::from(part) / 255.0;
            if share <= 0.040_45 { share / 12.92 } else { libm::pow((share + 0.055) / 1.055, 2.4) }
        };
        0.212_6 * linear(self.0) + 0.715_2 * linear(self.1) + 0.072_2 * linear(self.2)
    }

    fn darker(self) -> Self {
        let part = |part: u8| (u16::from(part) * 55 / 100) as u8;
        Self(part(self.0), part(self.1), part(self.2))
    }

    fn lighter(self) -> Self {
        let part = |part: u8| 255 - ((255 - u16::from(part)) * 55 / 100) as u8;
        Self(part(self.0), part(self.1), part(self.2))
    }
}

/// For capacities and reference lines.
pub const GREY: Colour = Colour(0x8c, 0x8c, 0x8c);

/// Seven of the eight colours of Okabe and Ito, "Color Universal Design", 2008; their yellow is too pale for lines on white. The
/// eighth, black, has no darker shade, so it comes last.
const OKABE_ITO: [Colour; 7] = [
    Colour(0x00, 0x72, 0xb2),
    Colour(0xd5, 0x5e, 0x00),
    Colour(0x00, 0x9e, 0x73),
    Colour(0xcc, 0x79, 0xa7),
    Colour(0xe6, 0x9f, 0x00),
    Colour(0x56, 0xb4, 0xe9),
    Colour(0x00, 0x00, 0x00),
];

/// The colour of each name; the same in all plots of a report.
#[derive(Clone, Debug, Default)]
pub struct Palette {
    /// With the order of their first appearance.
    names: HashMap<String, usize>,
}

impl Palette {
    /// Colours by order of first appearance.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut palette = Self::default();
        for name in names {
            let next = palette.names.len();
            if !palette.names.contains_key(name) {
                palette.names.insert(name.to_owned(), next);
            }
        }
        palette
    }

    /// The colour of a name; grey for an unknown one. After seven names come darker shades, then lighter ones.
    pub fn colour(&self, name: &str) -> Colour {
        self.names.get(name).map_or(GREY, |index| Self::nth(*index))
    }

    /// The colour of the name that comes `index`-th.
    pub fn nth(index: usize) -> Colour {
        let plain = OKABE_ITO.len();
        match index {
            _ if index < plain => OKABE_ITO[index],
            // Black has no shades.
            _ => {
                let shades = plain - 1;
                let colour = OKABE_ITO[(index - plain) % shades];
                if ((index - plain) / shades).is_multiple_of(2) { colour.darker() } else { colour.lighter() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_dark_enough_and_dark_colours_stay() {
        for index in 0..19 {
            let text = Palette::nth(index).for_text();
            assert!(1.05 / (text.luminance() + 0.05) >= 4.5, "{index}: {}", text.hex());
        }
        assert_eq!(Colour(0, 0x72, 0xb2).for_text(), Colour(0, 0x72, 0xb2), "5.2 to 1 already");
        assert!(Palette::nth(5).for_text() != Colour(0, 0, 0), "the hue is kept");
    }

    #[test]
    fn nineteen_names_have_nineteen_colours() {
        let names: Vec<String> = (0..19).map(|index| format!("cc{index}")).collect();
        let palette = Palette::of(names.iter().map(String::as_str).chain(["cc0"]));
        let colours: Vec<Colour> = names.iter().map(|name| palette.colour(name)).collect();
        for (index, colour) in colours.iter().enumerate() {
            assert!(!colours[..index].contains(colour), "{index}");
        }
        assert_eq!((palette.colour("other"), colours[0].hex().as_str()), (GREY, "#0072b2"));
    }
}
