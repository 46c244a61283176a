/// @file GhostReads.hpp
/// @brief Ghost states of pairs and, with debug checks, the errors of reading ghosts.
#pragma once

#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Exchange/RingField.hpp"

#include <functional>
#include <string>
#include <vector>

namespace DNDS::test {

/// Each way to read ghost 0 that counts as reading.
inline std::vector<std::function<real(const RealField &)>> waysToRead() {
    const auto ghost = [](const RealField &u) { return u.father->size(); };
    return {[ghost](const RealField &u) { return u.view()(ghost(u), 0); },
            [ghost](const RealField &u) { return u.view()[ghost(u)][4]; },
            [ghost](const RealField &u) { return u.deviceView<DeviceBackend::Host>()(ghost(u), 1); },
            [ghost](const RealField &u) { return u(ghost(u), 0); },
            [ghost](const RealField &u) { return u[ghost(u)][0]; },
            [ghost](const RealField &u) {
                real read = 0;
                parallelFor(Executor::host(), 1,
                            [v = u.view(), to = &read, row = ghost(u)](index i) { *to = v(row + i, 0); });
                return read;
            }};
}

template <class E>
void expectReadsThrow(const RealField &u, const std::string &text) {
    for (const auto &read : waysToRead()) {
        const std::string message = messageOf<E>([&] { (void)read(u); });
        expectContains(message, "'" + u.father->name() + "'");
        expectContains(message, text);
    }
    EXPECT_NO_THROW((void)u.view(GhostUse::Unchecked)(u.father->size(), 0));
    EXPECT_NO_THROW((void)u.view()(0, 0)) << "owned rows";
    EXPECT_NO_THROW((void)u(0, 0));
}

inline void expectReadsWork(const RealField &u) {
    for (const auto &read : waysToRead())
        EXPECT_NO_THROW((void)read(u));
}

/// Fails the test unless `u` says that its ghosts are in that state, and in programs with debug checks unless reads say
/// so.
inline void expectState(const RealField &u, GhostState state) {
    EXPECT_EQ(u.ghostState(), state);
#if defined(DNDS_DEBUG_CHECKS)
    if (u.son->size() == 0 || state == GhostState::Current)
        return u.son->size() > 0 ? expectReadsWork(u) : void();
    expectReadsThrow<StaleError>(u, state == GhostState::Stale ? "are older than the owned rows" : "were never pulled");
#endif
}

} // namespace DNDS::test
