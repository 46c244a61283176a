// Compiled with DNDS_DEBUG_CHECKS, linked with a library that was built without: element access through views is
// checked, and so is the use of ghosts.

#include <DNDS/Array/ArrayAdjacency.hpp>
#include <DNDS/Array/ArrayPair.hpp>
#include <DNDS/Mpi/FailTogether.hpp>
#include <DNDS/Mpi/RunMain.hpp>

#include <cstdio>
#include <utility>
#include <vector>

template <class Expected = DNDS::IndexError, class Access>
int failsToCheck(const char *what, Access &&access) {
    try {
        access();
    } catch (const Expected &error) {
        return 0;
    }
    std::fprintf(stderr, "%s is not checked\n", what);
    return 1;
}

int ghosts(DNDS::CommunicatorView world) {
    DNDS::ArrayPair<DNDS::ParArray<DNDS::real, 2>> u;
    u.initPair("u", world);
    u.father->resize(3);
    u.transAttach();
    u.trans.createFatherGlobalMapping();
    const DNDS::index first = u.father->globalMapping()->localBegin();
    u.trans.createGhostMapping(std::vector<DNDS::index>{(first + 3) % u.father->globalMapping()->globalSize()});
    u.trans.createMPITypes();
    u.trans.initPersistentPull();
    const auto view = std::as_const(u).view();
    const auto write = [&] { (*u.father)(0, 1) += 1; };
    write();
    int failures = failsToCheck<DNDS::StaleError>("a ghost never pulled", [&] { (void)view(3, 1); });
    u.trans.startPersistentPull();
    failures += failsToCheck<DNDS::StateError>("a ghost in flight", [&] { (void)view(3, 1); });
    (void)view(0, 1);
    u.trans.waitPersistentPull();
    failures += view(3, 1) == 1 ? 0 : 1;
    write();
    failures += failsToCheck<DNDS::StaleError>("an old ghost", [&] { (void)std::as_const(u)(3, 1); });
    u.trans.startPersistentPull();
    world.barrier();
    write();
    failures += failsToCheck<DNDS::Error>("writing in flight", [&] { u.trans.waitPersistentPull(); }); // which revokes
    DNDS::recover(world);
    return failures;
}

int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [](DNDS::CommunicatorView world) {
        if (const int failures = ghosts(world); failures > 0)
            return failures;
        DNDS::ArrayPair<DNDS::ParArray<DNDS::real, 2>> u;
        u.initPair("u", world);
        u.father->resize(3);
        u.transAttach();
        u.trans.createFatherGlobalMapping();
        u.trans.createGhostMapping(std::vector<DNDS::index>{});
        u.trans.createMPITypes();
        u.trans.pullOnce(); // through the library
        const auto own = u.father->view();
        const auto all = u.view();
        own(2, 1) = 1; // the last element
        return failsToCheck("a row of a view", [&] { own(3, 0) = 1; }) +
               failsToCheck("an element of a view", [&] { own(0, 2) = 1; }) +
               failsToCheck("a row's pointer", [&] { *own[-1] = 1; }) +
               failsToCheck("a pair's view", [&] { all(3, 0) = 1; }) + (all(2, 1) == 1 ? 0 : 1);
    });
}
