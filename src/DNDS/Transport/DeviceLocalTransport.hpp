/// @file DeviceLocalTransport.hpp
/// @brief Rows of device memory that a rank pulls from itself: one kernel.
#pragma once

#include "DNDS/Transport/DeviceLane.hpp"
#include "DNDS/Transport/DeviceRowCopy.hpp"
#include "DNDS/Transport/Transport.hpp"

#include <memory>

namespace DNDS {

/// Copies within this rank's device memory, on the lane of the exchange.
class DeviceLocalTransport final : public Transport {
  public:
    DeviceLocalTransport(TransportPlan plan, std::shared_ptr<DeviceLane> lane);
    ~DeviceLocalTransport() override;

    TransportKind kind() const noexcept override { return TransportKind::Local; }
    void adopt(TransportPlan plan) override;
    void bind(const Endpoints &endpoints) override;
    void start() override { copy_.launch(lane_->stream); }
    bool progress() override { return true; }
    void wait() override {}
    void refuse() override {}

  private:
    void build();

    TransportPlan plan_;
    std::shared_ptr<DeviceLane> lane_;
    DeviceRowCopy copy_;
};

} // namespace DNDS
