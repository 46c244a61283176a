// What goes wrong while rows of device memory are under way, and the order of streams.

#include "DNDS/Device/Event.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Mpi/Recovery.hpp"
#include "DeviceCase.hpp"
#include "RingField.hpp"

#include <chrono>
#include <memory>
#include <thread>

namespace DNDS {
namespace {

using namespace DNDS::test;

class DeviceFailures : public WithDevice {};

TEST_F(DeviceFailures, ACopyThatIsNotCurrentIsNamedAndPeersAreTold) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs a peer";
    for (const TransportKind kind : deviceTransports()) {
        RealField u = ringField<RealField>("density");
        u.toDevice();
        u.trans.initPersistentPull({.transport = kind});
        u.toHost();
        fill(u, 1); // on the host, and forgotten there
        expectContains(messageOnAll<Error>([&] { u.trans.startPersistentPull(); }), "density");
        recover(MPI_COMM_WORLD);
        u.toDevice();
        u.trans.startPersistentPull();
        u.trans.waitPersistentPull();
        expectGhosts(u, 1);
    }
}

TEST_F(DeviceFailures, ArraysThatAreGivenUpInFlightKeepTheirMemoryUntilTheRowsAreThere) {
    for (const TransportKind kind : deviceTransports()) {
        RealField u = ringField();
        u.toDevice();
        u.trans.initPersistentPull({.transport = kind});
        refill(u, 1);
        u.trans.startPersistentPull();
        u.father->swapData(*std::make_shared<RealField::ArrayType>("other", MPI_COMM_WORLD)); // which is gone
        u.son->swapData(*std::make_shared<RealField::ArrayType>("another", MPI_COMM_WORLD));
        EXPECT_THROW(u.trans.waitPersistentPull(), Error);
        EXPECT_THROW(u.trans.startPersistentPull(), Error);
        recover(MPI_COMM_WORLD);
    }
}

/// Holds a stream of the emulated device up for a while, then changes the field there.
struct LateWriter {
    ArrayView<real, 5> rows;
    void operator()(index first, index last) const {
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        for (index row = first; row < last; ++row)
            for (rowsize j = 0; j < 5; ++j)
                rows(row, j) += 1000; // from one version to the next
    }
};

TEST_F(DeviceFailures, AnExchangeWaitsForTheStreamThatWritesItsRowsAndStreamsWaitForIt) {
    if (Device::name() != "emulated")
        GTEST_SKIP() << "the kernels of this test are compiled for the host";
    const Device::Stream stream;
    const Device::Stream other;
    for (const TransportKind kind : deviceTransports()) {
        SCOPED_TRACE(transportName(kind));
        RealField u = ringField();
        u.toDevice();
        u.trans.initPersistentPull({.transport = kind});
        refill(u, 0);
        for (int version = 1; version < 5; ++version) {
            Device::launchHostKernel(stream, u.father->size(), LateWriter{u.father->deviceView<DeviceBackend::CUDA>()});
            u.trans.startPersistentPull(stream);
            u.trans.waitPersistentPull(other);
            // read on the stream that waits, without waiting here
            auto ghosts = std::make_shared<std::vector<real>>();
            const auto son = std::as_const(*u.son).deviceView<DeviceBackend::CUDA>();
            Device::launchHostKernel(other, 1, [son, ghosts](index, index) {
                for (index row = 0; row < son.size(); ++row)
                    for (rowsize j = 0; j < 5; ++j)
                        ghosts->push_back(son(row, j));
            });
            Device::runAfter(stream, other); // so that the son is not overwritten while it is read
            other.synchronize();
            const auto rows = u.trans.ghostMapping()->ghosts();
            ASSERT_EQ(ghosts->size(), rows.size() * 5);
            for (std::size_t k = 0; k < rows.size(); ++k)
                for (rowsize j = 0; j < 5; ++j)
                    EXPECT_EQ((*ghosts)[5 * k + static_cast<std::size_t>(j)], ringValue<real>(rows[k], j, version));
        }
    }
}

} // namespace
} // namespace DNDS
