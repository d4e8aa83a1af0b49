"""The paper's setting, against the optimiser."""

import numpy as np

from greenfold import optimize
from greenfold.apps.paper import fig2
from greenfold.optimizers.linear import best_margins


def test_best_margins_are_those_of_the_optimiser():
    p = fig2.QUICK
    unfolding, u = fig2._unfolding(p), fig2._projections(p)[0]
    stimuli = [fig2._stimuli(p, i) for i in range(3)]
    for time in (0.5, 3.0, 9.25):
        there = unfolding.with_readout(time)
        R = there.input_response(u)
        mu = np.array([s.mu for s in stimuli])
        psi = np.array([s.psi for s in stimuli])
        wanted = [optimize(there, s, p.eta, u=u).soft_margin for s in stimuli]
        np.testing.assert_allclose(best_margins(R, mu, psi, p.eta), wanted, rtol=1e-9)
