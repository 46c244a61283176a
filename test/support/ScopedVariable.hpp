/// @file ScopedVariable.hpp
/// @brief An environment variable that is set for a while.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace DNDS::test {

/// Sets a variable of the environment on this rank and restores it.
class ScopedVariable {
  public:
    ScopedVariable(const char *name, const std::string &value) : name_(name) {
        if (const char *before = std::getenv(name))
            before_ = before;
        ::setenv(name, value.c_str(), 1);
    }
    ScopedVariable(const ScopedVariable &) = delete;
    ScopedVariable &operator=(const ScopedVariable &) = delete;
    ~ScopedVariable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }

  private:
    const char *name_;
    std::optional<std::string> before_;
};

} // namespace DNDS::test
