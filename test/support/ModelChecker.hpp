/// @file ModelChecker.hpp
/// @brief For tests only: visits every state that a model of a protocol can come to, whatever the order of its steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace DNDS::test {

/// Result of `explore`.
struct Exploration {
    std::size_t states = 0;
    std::size_t steps = 0;
    std::size_t ends = 0;  ///< states in which nothing but a fault happens any more
    std::string violation; ///< description and the shortest way there, one step a line; empty if none
};

/// An explicit-state model checker: breadth first, so that a counterexample is as short as possible.
///
/// A `Model` has
///
///     using State = ...;                          trivially copyable, equal where its bytes are (no padding)
///     using Step = ...;                           small; what happened
///     void forEachStep(const State &from, take);  calls take(step, next state) for every step that is possible
///     std::string wrong(const State &);           what must not be in a state; empty: nothing
///     bool isFault(const Step &);                 whether it may happen at any time, but progress must not rely on it
///     bool mayEnd(const State &);                 whether all may stay like this for ever
///     std::string describe(const Step &);
///
/// A violation is a state that is wrong; one in which only faults can happen, and the model may not end (a deadlock);
/// and a cycle. A look that finds nothing is no step. So without a violation every run comes to an end.
template <class Model>
class ModelChecker {
  public:
    using State = typename Model::State;
    using Step = typename Model::Step;
    static_assert(std::is_trivially_copyable_v<State> && std::has_unique_object_representations_v<State>);

    explicit ModelChecker(const Model &model) : model_(model) { table_.assign(1U << 16U, none); }

    /// Stops, with a violation, at more than `most` states.
    Exploration explore(const State &first, std::size_t most) {
        found(first, none, {});
        std::vector<std::uint32_t> targets;
        std::vector<std::size_t> begins;
        for (std::uint32_t at = 0; at < states_.size(); ++at) {
            begins.push_back(targets.size());
            const State from = states_[at]; // the list grows
            std::string wrong = model_.wrong(from);
            if (!wrong.empty())
                return result(targets.size(), wrong, at);
            bool goesOn = false;
            model_.forEachStep(from, [&](const Step &step, const State &next) {
                if (same(from, next))
                    return;
                targets.push_back(found(next, at, step));
                goesOn = goesOn || !model_.isFault(step);
            });
            if (!goesOn) {
                if (!model_.mayEnd(from))
                    return result(targets.size(), "nobody can go on", at);
                ++ends_;
            }
            if (states_.size() > most)
                return result(targets.size(), "more states than expected", at);
        }
        begins.push_back(targets.size());
        if (const std::optional<std::uint32_t> cyclic = onCycle(begins, targets))
            return result(targets.size(), "it may go round for ever", *cyclic);
        return result(targets.size(), {}, 0);
    }

  private:
    static constexpr std::uint32_t none = UINT32_MAX;
    struct Origin {
        std::uint32_t from;
        Step step;
    };

    static bool same(const State &a, const State &b) { return std::memcmp(&a, &b, sizeof(State)) == 0; }
    static std::size_t hashOf(const State &state) {
        const auto *bytes = reinterpret_cast<const unsigned char *>(&state);
        std::uint64_t hash = 0x9e3779b97f4a7c15U;
        for (std::size_t begin = 0; begin < sizeof(State); begin += sizeof hash) {
            std::uint64_t word = 0;
            std::memcpy(&word, bytes + begin,
                        sizeof(State) - begin < sizeof word ? sizeof(State) - begin : sizeof word);
            hash = (hash ^ word) * 0xff51afd7ed558ccdU;
            hash ^= hash >> 32U;
        }
        return static_cast<std::size_t>(hash);
    }

    /// The number of a state, which is new or not.
    std::uint32_t found(const State &state, std::uint32_t from, const Step &step) {
        if (2 * states_.size() > table_.size())
            grow();
        std::uint32_t &place = placeOf(state);
        if (place == none) {
            place = static_cast<std::uint32_t>(states_.size());
            states_.push_back(state);
            origins_.push_back({from, step});
        }
        return place;
    }
    std::uint32_t &placeOf(const State &state) {
        std::size_t place = hashOf(state) & (table_.size() - 1);
        while (table_[place] != none && !same(states_[table_[place]], state))
            place = (place + 1) & (table_.size() - 1);
        return table_[place];
    }
    void grow() {
        table_.assign(4 * table_.size(), none);
        for (std::uint32_t k = 0; k < states_.size(); ++k)
            placeOf(states_[k]) = k;
    }

    /// A state that is left over where states without a predecessor are taken away one after another.
    static std::optional<std::uint32_t> onCycle(const std::vector<std::size_t> &begins,
                                                const std::vector<std::uint32_t> &targets) {
        std::vector<std::uint32_t> predecessors(begins.size() - 1, 0);
        for (const std::uint32_t target : targets)
            ++predecessors[target];
        std::vector<std::uint32_t> free;
        for (std::uint32_t k = 0; k < predecessors.size(); ++k)
            if (predecessors[k] == 0)
                free.push_back(k);
        for (std::size_t k = 0; k < free.size(); ++k)
            for (std::size_t edge = begins[free[k]]; edge < begins[free[k] + 1]; ++edge)
                if (--predecessors[targets[edge]] == 0)
                    free.push_back(targets[edge]);
        for (std::uint32_t k = 0; k < predecessors.size(); ++k)
            if (predecessors[k] != 0)
                return k;
        return std::nullopt;
    }

    Exploration result(std::size_t steps, const std::string &wrong, std::uint32_t at) const {
        Exploration exploration{states_.size(), steps, ends_, wrong};
        if (wrong.empty())
            return exploration;
        std::string way;
        for (; origins_[at].from != none; at = origins_[at].from)
            way.insert(0, "\n  " + model_.describe(origins_[at].step));
        exploration.violation += " after" + way;
        return exploration;
    }

    const Model &model_;
    std::vector<State> states_;
    std::vector<Origin> origins_;
    std::vector<std::uint32_t> table_; ///< open addressing; the numbers of states
    std::size_t ends_ = 0;
};

} // namespace DNDS::test
