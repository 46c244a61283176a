// Destinations in runs in device memory.

#include "DNDS/Transport/ScatteredCase.hpp"

#include "DNDS/Exchange/DeviceCase.hpp"

namespace DNDS {
namespace {

using namespace DNDS::test;

class DeviceScatteredDestinations : public WithDevice {};

TEST_F(DeviceScatteredDestinations, AreFilledByEveryTransportOfTheDevice) {
    expectScattered(TransportKind::Local, MemorySpace::Device);
    for (const TransportKind kind : deviceTransports())
        expectScattered(kind, MemorySpace::Device);
}

} // namespace
} // namespace DNDS
