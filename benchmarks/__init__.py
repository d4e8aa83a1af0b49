"""Side by side with peers, in one run, as ratios; targets are stated, never asserted."""
