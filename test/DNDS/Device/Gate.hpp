// A kernel of the emulated device that ends when the test says so.
#pragma once

#include "DNDS/Device/Hooks.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>

namespace DNDS::Device::test {

/// Holds a stream of the emulated device up until it is opened or destroyed.
class Gate {
  public:
    explicit Gate(StreamHandle stream) {
        launchHostKernel(stream, 1, [open = open_](index, index) {
            const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
            while (!*open && std::chrono::steady_clock::now() < end)
                std::this_thread::sleep_for(std::chrono::microseconds(50));
            if (!*open)
                throw std::runtime_error("nobody opened the gate");
        });
    }
    ~Gate() { open(); }
    Gate(const Gate &) = delete;
    Gate &operator=(const Gate &) = delete;

    void open() { *open_ = true; }

  private:
    std::shared_ptr<std::atomic<bool>> open_ = std::make_shared<std::atomic<bool>>(false);
};

} // namespace DNDS::Device::test
