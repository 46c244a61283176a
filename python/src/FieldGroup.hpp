/// @file FieldGroup.hpp
/// @brief Fields that are exchanged together, for Python.
#pragma once

#include "Exchanger.hpp"

#include <functional>
#include <memory>

namespace DNDS::Python {

/// Several fields of one mapping, in one message per peer.
class FieldGroup {
  public:
    using Pattern = std::shared_ptr<const ExchangePattern>;
    /// Makes of the fields' pattern the one to exchange by.
    using Ghosts = std::function<Pattern(Pattern)>;

    /// Throws ArgumentError for no fields and for different mappings, TypeError for other objects. Local, except with
    /// `some`.
    explicit FieldGroup(const nanobind::iterable &fields, const Ghosts &some = {});
    Exchanger &exchanger() noexcept { return exchanger_; }

  private:
    Exchanger exchanger_;
};

} // namespace DNDS::Python
