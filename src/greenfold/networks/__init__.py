"""What a network is: weights, gains, resting state, modes, stability."""
