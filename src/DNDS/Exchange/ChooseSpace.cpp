#include "DNDS/Exchange/ChooseSpace.hpp"

#include <algorithm>
#include <array>

namespace DNDS {

ExchangeSpace spaceAskedFor(const TransportTable &transports, const ExchangeOptions &options) {
    const TransportDescriptor *wished = transports.find(options.transport);
    if (options.space != ExchangeSpace::Auto || wished == nullptr)
        return options.space;
    return wished->servesHost ? ExchangeSpace::Host : ExchangeSpace::Device;
}

MemorySpace agreeOnSpace(const CommunicatorView &comm, std::span<const ExchangeMember> members, ExchangeSpace wish) {
    if (Device::name() == "absent")
        return MemorySpace::Host; // on all ranks; whoever asks for the device throws, and all of them then
    const bool onDevice = Device::available() && std::ranges::all_of(members, [](const ExchangeMember &member) {
                              return member.onDevice && member.onDevice();
                          });
    std::array<int, 3> all{wish != ExchangeSpace::Host ? 1 : 0, wish != ExchangeSpace::Device ? 1 : 0,
                           wish != ExchangeSpace::Auto || onDevice ? 1 : 0};
    comm.allReduce(all.data(), 3, MPI_MIN);
    const bool hostUnwanted = all[0] == 1;
    const bool deviceUnwanted = all[1] == 1;
    DNDS_CHECK(hostUnwanted || deviceUnwanted, ArgumentError,
               "some ranks ask for rows in host memory, others for rows in device memory: choose the same space or "
               "transport on all ranks");
    return !deviceUnwanted || (hostUnwanted && all[2] == 1) ? MemorySpace::Device : MemorySpace::Host;
}

} // namespace DNDS
