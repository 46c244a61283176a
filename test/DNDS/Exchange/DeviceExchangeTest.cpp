// Pulls and pushes of rows in device memory: graphs, streams, and the bits of the host. What rows of the host have in
// common with them is in ExchangeTest.cpp, what goes wrong in ExchangeFailureTest.cpp.

#include "DNDS/Device/Stream.hpp"
#include "DNDS/Exchange/Exchange.hpp"
#include "DeviceCase.hpp"
#include "FieldCase.hpp"
#include "RingField.hpp"

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace DNDS {
namespace {

using namespace DNDS::test;

class DeviceExchange : public WithDevice {};

TEST_F(DeviceExchange, PullsOfOwnRowsAreReplayedFromGraphs) {
    const CommunicatorView alone(MPI_COMM_SELF);
    ArrayPair<ParArray<real, 3>> field;
    field.initPair("own rows", alone);
    field.father->resize(100);
    field.transAttach();
    field.trans.createFatherGlobalMapping();
    field.trans.createGhostMapping(std::vector<index>{7, 99, 0, 55});
    field.trans.createMPITypes();
    field.toDevice();
    field.trans.initPersistentPull();
    ASSERT_TRUE(field.trans.canCapturePull());
    const Device::Stream stream;
    const auto pull = [&] {
        field.trans.startPersistentPull(stream);
        field.trans.waitPersistentPull(stream);
    };
    pull();
    const Device::Graph graph = Device::Graph::capture(stream, pull);
    for (int version = 0; version < 5; ++version) {
        field.toHost();
        for (index row = 0; row < 100; ++row)
            (*field.father)(row, 1) = static_cast<real>(100 * version + row);
        field.toDevice();
        (void)field.son->deviceView<DeviceBackend::CUDA>(); // about to be written there
        graph.launch(stream);
        stream.synchronize();
        field.toHost();
        for (index row = 0; row < 4; ++row)
            ASSERT_EQ(
                (*field.son)(row, 1),
                static_cast<real>(100 * version + field.trans.ghostMapping()->ghosts()[static_cast<std::size_t>(row)]));
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

TEST_F(DeviceExchange, WaitsForTheStreamThatWritesItsRowsAndStreamsWaitForIt) {
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
