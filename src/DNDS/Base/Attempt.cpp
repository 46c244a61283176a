#include "DNDS/Base/Error.hpp"

#include <new>

namespace DNDS {

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
