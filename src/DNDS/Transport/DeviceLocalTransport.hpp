/// @file DeviceLocalTransport.hpp
/// @brief Rows of device memory that a rank pulls from itself: one kernel.
#pragma once

#include "DNDS/Transport/DeviceRowCopy.hpp"
#include "DNDS/Transport/ExchangeStream.hpp"
#include "DNDS/Transport/Transport.hpp"

#include <memory>

namespace DNDS {

/// Copies within this rank's device memory, on the stream of the exchange.
class DeviceLocalTransport final : public Transport {
  public:
    DeviceLocalTransport(TransportPlan plan, std::shared_ptr<ExchangeStream> stream);
    ~DeviceLocalTransport() override;

    void replacePlan(TransportPlan plan) override;
    void bind(const Endpoints &endpoints) override;
    void start() override { copy_.launch(stream_->stream); }
    bool progress() override { return true; }

  private:
    void build();

    TransportPlan plan_;
    std::shared_ptr<ExchangeStream> stream_;
    DeviceRowCopy copy_;
};

} // namespace DNDS
