/// @file LocalTransport.hpp
/// @brief Rows that a rank pulls from itself: a copy, no message.
#pragma once

#include "DNDS/Transport/BoxToBox.hpp"
#include "DNDS/Transport/TransportDescriptor.hpp"

namespace DNDS {

/// Copies within this rank. It copies in `start`, as a message would leave in `start`.
class LocalTransport final : public Transport {
  public:
    explicit LocalTransport(TransportPlan plan) { LocalTransport::replacePlan(std::move(plan)); }

    void replacePlan(TransportPlan plan) override;
    void bind(const Endpoints &endpoints) override { endpoints_ = endpoints; }
    void start() override;
    bool progress() override { return true; }

  private:
    struct Scattered { ///< a part whose destination is several runs
        std::size_t part;
        BoxToBox boxes;
        std::vector<Device::CopyBlock> blocks; ///< where rows are no boxes
    };

    TransportPlan plan_;
    std::vector<Scattered> scattered_;
    Endpoints endpoints_;
};

/// On the host, and in device memory.
TransportDescriptor describeLocalTransport();

} // namespace DNDS
