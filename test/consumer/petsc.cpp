#include <DNDS/Petsc/Petsc.hpp>

#include <DNDS/Array/ArrayDof.hpp>
#include <DNDS/Mpi/RunMain.hpp>

int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [](DNDS::CommunicatorView world) {
        const DNDS::Petsc::Session petsc;
        DNDS::ArrayDof<3, 1> u;
        u.initPair("u", world);
        u.father->resize(world.rank() + 1);
        const DNDS::Petsc::Vector rows(u.father);
        DNDS::Petsc::check(VecSet(rows.get(), 2), "VecSet");
        return (*u.father)(world.rank(), 2) == 2 ? 0 : 1;
    });
}
