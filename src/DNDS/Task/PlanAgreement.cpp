#include "DNDS/Task/PlanAgreement.hpp"

#include "DNDS/Base/ContentHash.hpp"

#include <fmt/ranges.h>

namespace DNDS::Task {

PlanAgreement::PlanAgreement(const GraphModel &graph, const PlanModel &plan) : graph_(graph), plan_(plan) {
    std::vector<std::shared_ptr<const ExchangePattern>> patterns;
    for (const Transfer &transfer : plan.transfers)
        patterns.push_back(transfer.pattern);
    if (!patterns.empty())
        words_.emplace(patterns.front()->sharedContext(), fmt::format("plan '{}'", graph.name),
                       PeerAgreement::peersOf(patterns));
}

template <class Work>
void PlanAgreement::explaining(const Work &work) const {
    try {
        work();
    } catch (const StateError &error) {
        std::vector<std::string> made;
        for (std::size_t k = 0; k < dropped_.size(); ++k)
            if (plan_.transfers[k].conditional)
                for (const std::size_t a : plan_.transfers[k].arrays)
                    made.push_back(fmt::format("'{}' {}", graph_.arrays[a]->name(), dropped_[k] ? "left out" : "made"));
        throw StateError(fmt::format(
            "{}. Here this is run {}, with pulls of {}. An array that only some ranks write outside "
            "of the plan has to be told to all: call changed() on the others. Reading through an array that is not "
            "const counts as writing: use std::as_const",
            error.message(), run_, made.empty() ? "nothing" : fmt::format("{}", fmt::join(made, ", "))));
    }
}

void PlanAgreement::begin(index run, const std::vector<bool> &dropped) {
    if (!words_)
        return;
    explaining([&] { words_->finish(); });
    run_ = run;
    dropped_ = dropped;
    ContentHash word;
    word.addText(graph_.name);
    word.add(static_cast<std::uint64_t>(run));
    for (const bool isDropped : dropped)
        word.add(isDropped ? 1 : 2);
    words_->begin(word.value());
}

void PlanAgreement::look() {
    if (words_)
        explaining([&] { words_->look(); });
}

} // namespace DNDS::Task
