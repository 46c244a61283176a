#include "DNDS/Task/Aside.hpp"

#include <utility>

namespace DNDS::Task {

Aside::~Aside() {
    if (pending_.valid())
        pending_.wait();
}

void Aside::begin(std::function<void()> work) {
    wait();
    pending_ = std::async(std::launch::async, std::move(work));
}

void Aside::wait() {
    if (pending_.valid())
        std::exchange(pending_, {}).get();
}

} // namespace DNDS::Task
