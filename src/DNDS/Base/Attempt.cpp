#include "DNDS/Base/Error.hpp"

#include <new>

namespace DNDS {

/// Handlers run from the most derived type to the least: a MemoryError of DNDS keeps its text, a bare
/// std::bad_alloc is given the same kind. Copying the text may itself throw std::bad_alloc; callers on failing
/// paths wrap the call in `attempt`.
Failure describeFailure(const std::exception_ptr &failure) {
    try {
        if (failure)
            std::rethrow_exception(failure);
        return {};
    } catch (const Error &error) {
        return {error.kind(), error.message(), error.where().function};
    } catch (const std::bad_alloc &error) {
        return {ErrorKind::Memory, error.what(), {}};
    } catch (const std::exception &error) {
        return {ErrorKind::State, error.what(), {}};
    } catch (...) {
        return {ErrorKind::State, "an exception of unknown type", {}};
    }
}

} // namespace DNDS
