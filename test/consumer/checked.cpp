// Compiled with DNDS_DEBUG_CHECKS, linked with a library that was built without: element access through views is
// checked.

#include <DNDS/Array/ArrayAdjacency.hpp>
#include <DNDS/Array/ArrayPair.hpp>
#include <DNDS/Mpi/RunMain.hpp>

#include <cstdio>

template <class Access>
int failsToCheck(const char *what, Access &&access) {
    try {
        access();
    } catch (const DNDS::IndexError &error) {
        return 0;
    }
    std::fprintf(stderr, "%s is not checked\n", what);
    return 1;
}

int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [](DNDS::CommunicatorView world) {
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
