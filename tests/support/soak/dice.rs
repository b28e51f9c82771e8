//! Chance that a seed gives again.

/// A generator of the soak's own (SplitMix64), so that a seed means the same with every version of
/// everything else.
pub struct Dice(u64);

impl Dice {
    /// The dice of one of many streams, none of which tells anything of another.
    pub fn new(seed: u64, stream: u64) -> Dice {
        let mut dice = Dice(seed);
        let start = dice.roll() ^ stream.wrapping_mul(0xd134_2543_de82_ef95);
        Dice(start)
    }

    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in `[0, end)`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.roll() % end as u64) as usize
    }

    /// True so many times in a hundred.
    pub fn percent(&mut self, times: usize) -> bool {
        self.below(100) < times
    }

    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// One of these, each as often as its weight says.
    pub fn weighted<T: Clone>(&mut self, of: &[(usize, T)]) -> T {
        let total = of.iter().map(|(weight, _)| weight).sum();
        let mut at = self.below(total);
        for (weight, thing) in of {
            if at < *weight {
                return thing.clone();
            }
            at -= weight;
        }
        unreachable!("the weights add up")
    }
}
