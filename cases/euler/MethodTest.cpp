// Computations at a point: fluxes, exact flows, states at boundaries, limiters.

#include "TestSupport.hpp"

#include <gtest/gtest.h>

namespace Euler {
namespace {

const Primitive someState{1.2, {0.3, -0.4, 0.1}, 0.9};
const Primitive otherState{0.7, {0.1, 0.5, -0.3}, 0.6};
const Vector someNormal{2.0 / 7, -3.0 / 7, 6.0 / 7};

TEST(RiemannSolvers, AreConsistentAndAntisymmetric) {
    const auto roe = [](const Primitive &l, const Primitive &r, Vector n) { return roeFlux(gas, l, r, n, 0.1); };
    const auto hllc = [](const Primitive &l, const Primitive &r, Vector n) { return hllcFlux(gas, l, r, n); };
    const auto check = [](auto &&flux) {
        EXPECT_LT(largestDifference(flux(someState, someState, someNormal), gas.normalFlux(someState, someNormal)),
                  1e-14);
        const Conserved there = flux(someState, otherState, someNormal);
        const Conserved back = flux(otherState, someState, -1.0 * someNormal);
        EXPECT_LT(largestDifference(there, -1.0 * back), 1e-14);
        EXPECT_GT(largestDifference(there, gas.normalFlux(someState, someNormal)), 1e-3);
        // Supersonic: all comes from where the flow comes from.
        Primitive fast = someState, slow = otherState;
        fast.velocity = slow.velocity = 4.0 * someNormal;
        EXPECT_LT(largestDifference(flux(fast, slow, someNormal), gas.normalFlux(fast, someNormal)), 1e-13);
    };
    check(roe);
    check(hllc);
    // A contact at rest stays as it is.
    const Primitive light{0.1, {}, 1}, heavy{10, {}, 1};
    EXPECT_EQ(hllc(light, heavy, someNormal).mass, 0);
    EXPECT_NEAR(roe(light, heavy, someNormal).mass, 0, 1e-14);
}

TEST(ExactFlows, SodHasTheValuesOfTheLiterature) {
    const ShockTube tube{{1, {}, 1}, {0.125, {}, 0.1}, 0.5};
    const Primitive left = tube.at(gas, {0.6}, 0.2);
    EXPECT_NEAR(left.pressure, 0.30313, 1e-5);
    EXPECT_NEAR(left.velocity.x, 0.92745, 1e-5);
    EXPECT_NEAR(left.density, 0.42632, 1e-5);
    EXPECT_NEAR(tube.at(gas, {0.8}, 0.2).density, 0.26557, 1e-5);
    EXPECT_EQ(tube.at(gas, {0.9}, 0.2).density, 0.125);
    EXPECT_EQ(tube.at(gas, {0.2}, 0.2).density, 1);
    // Mirrored, the same happens the other way round.
    const ShockTube mirrored{tube.right, tube.left, 0.5};
    for (const real x : {0.3, 0.45, 0.6, 0.8})
        EXPECT_NEAR(mirrored.at(gas, {1 - x}, 0.2).density, tube.at(gas, {x}, 0.2).density, 1e-12);
}

TEST(Boundary, StatesFollowTheFlow) {
    // The far field does not disturb the far field.
    const BoundaryCondition far{BoundaryKind::FarField, someState};
    EXPECT_LT(largestDifference(boundaryFlux(gas, far, someState, someNormal), gas.normalFlux(someState, someNormal)),
              1e-14);
    // Entropy comes from where the flow comes from.
    const auto entropy = [](const Primitive &w) { return w.pressure / std::pow(w.density, gas.gamma); };
    Primitive inside = otherState;
    for (const real speed : {0.2, -0.2}) {
        inside.velocity = speed * someNormal;
        BoundaryCondition condition{BoundaryKind::FarField, someState};
        condition.outside.velocity = inside.velocity;
        const Primitive at = boundaryState(gas, condition, inside, someNormal);
        EXPECT_NEAR(entropy(at), entropy(dot(at.velocity, someNormal) > 0 ? inside : someState), 1e-13);
    }
    const BoundaryCondition outlet{BoundaryKind::PressureOutlet, {0, {}, 0.5}};
    inside.velocity = 0.1 * someNormal;
    EXPECT_EQ(boundaryState(gas, outlet, inside, someNormal).pressure, 0.5);
    EXPECT_GT(dot(boundaryState(gas, outlet, inside, someNormal).velocity, someNormal), 0.1);
    inside.velocity = 5.0 * someNormal;
    EXPECT_EQ(boundaryState(gas, outlet, inside, someNormal).pressure, inside.pressure);
    const BoundaryCondition wall{BoundaryKind::Wall, {}};
    EXPECT_NEAR(dot(boundaryState(gas, wall, inside, someNormal).velocity, someNormal), 0, 1e-14);
    EXPECT_EQ(boundaryFlux(gas, wall, inside, someNormal).mass, 0);
}

TEST(Reconstruction, LimitersAndPositiveStates) {
    EXPECT_EQ(barthJespersen(0.5, 1.0), 1);
    EXPECT_EQ(barthJespersen(-2.0, -1.0), 0.5);
    EXPECT_EQ(barthJespersen(1.0, 0.0), 0);
    EXPECT_EQ(venkatakrishnan(1.0, 0.0, 0.0), 0);
    EXPECT_NEAR(venkatakrishnan(1.0, 0.0, 1e8), 1, 1e-6);
    EXPECT_EQ(venkatakrishnan(0.0, 0.0, 0.0), 1);
    EXPECT_NEAR(venkatakrishnan(1e-6, 1.0, 0.0), 1, 1e-5);

    real mean[variables] = {1, 2, 3, 4, 5};
    real gradient[gradientWidth] = {-3, 0, 0, 1, 0, 0};
    EXPECT_EQ(stateAt<3>(mean, gradient, {0.1}).density, 0.7);
    EXPECT_EQ(stateAt<3>(mean, gradient, {0.1}).velocity.x, 2.1);
    const Primitive kept = stateAt<3>(mean, gradient, {1});
    EXPECT_NEAR(kept.density, 0.1, 1e-15);
    EXPECT_NEAR(kept.velocity.x, 2.3, 1e-15);
}

} // namespace
} // namespace Euler
