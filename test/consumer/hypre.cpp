#include <DNDS/Hypre/BoomerAmg.hpp>

#include <DNDS/Mpi/RunMain.hpp>

#include <utility>

int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [](DNDS::CommunicatorView world) {
        DNDS::ArrayDof<1, 1> x, right;
        for (auto *u : {&x, &right}) {
            u->initPair("u", world);
            u->father->resize(1);
            u->transAttach();
            u->trans.createFatherGlobalMapping();
            u->trans.createGhostMapping({});
            u->trans.createMPITypes();
        }
        right.setConstant(4);
        DNDS::MatrixPattern::Neighbours none("none", world);
        none.resize(1, [](DNDS::index) { return DNDS::rowsize(0); });
        DNDS::SparseMatrix<> twice("twice", DNDS::MatrixPattern::create("diagonal", x.trans.pattern(), none));
        twice.add(0, 0, 2.0);
        const DNDS::Hypre::BoomerAmg amg(twice);
        amg(right, x);
        return (*std::as_const(x).father)(0, 0) == 2 ? 0 : 1;
    });
}
