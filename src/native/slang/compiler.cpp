#include "slang/compiler.h"

#include "slang/isolation/heap.h"

#include <cstring>
#include <thread>
#ifndef _WIN32
#include <pthread.h>
#endif

namespace spy {
namespace {

using namespace std::chrono_literals;

std::mutex compiler_mutex;
// never destroyed: the worker may outlive static destruction
std::shared_ptr<Compiler>& current_compiler()
{
    static auto* compiler = new std::shared_ptr<Compiler>();
    return *compiler;
}
Compiler::Hooks hooks;

/// How long a task may go on after its caller has left before the compiler that runs it is given up.
constexpr auto patience = 5s;

std::atomic<bool> closed{false}; ///< the process ends: only `closer` may compile
std::thread::id closer;

/// Deep expressions recurse in Slang; the default stack of a thread is too small for some that a main thread compiles.
/// Less where there is no room for so much.
constexpr size_t worker_stack_sizes[] = {size_t(256) << 20, size_t(64) << 20, size_t(16) << 20};

/// Somewhat less than Slang 2026.12 fills with small objects when it starts and reads our library.
constexpr size_t first_heap = size_t(160) << 20;

#ifndef _WIN32
void* call_function(void* data)
{
    const std::unique_ptr<std::function<void()>> function(static_cast<std::function<void()>*>(data));
    (*function)();
    return nullptr;
}
#endif

void start_thread(std::function<void()> body)
{
#ifdef _WIN32
    std::thread(std::move(body)).detach();
#else
    auto argument = std::make_unique<std::function<void()>>(std::move(body));
    int result = 0;
    for (const size_t size : worker_stack_sizes) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, size);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_t thread;
        result = pthread_create(&thread, &attributes, call_function, argument.get());
        pthread_attr_destroy(&attributes);
        if (result == 0) {
            (void)argument.release();
            return;
        }
    }
    fail_runtime(
        "cannot start the thread of the Slang compiler: ", std::strerror(result),
        "; raise the limit of this process for memory (ulimit -v) or threads (ulimit -u, pids of a container)");
#endif
}

} // namespace

struct Compiler::Task {
    std::function<void()> body;
    std::mutex mutex;
    std::condition_variable finished;
    bool done = false;
    std::exception_ptr error;
};

Compiler::Compiler() = default;

std::shared_ptr<Compiler> Compiler::instance()
{
    const std::lock_guard guard(compiler_mutex);
#ifndef _WIN32
    static const int registered = pthread_atfork(
        [] {
            compiler_mutex.lock();
            if (current_compiler())
                current_compiler()->m_paused = current_compiler()->pause_for_fork();
        },
        [] {
            if (current_compiler() && current_compiler()->m_paused)
                current_compiler()->resume_after_fork();
            compiler_mutex.unlock();
        },
        [] {
            if (current_compiler() && current_compiler()->m_paused) {
                current_compiler()->restart_in_child();
            } else if (current_compiler()) { // a thread that the child lacks was in the middle of something
                current_compiler()->m_abandoned = true;
                new std::shared_ptr<Compiler>(current_compiler());
            }
            compiler_mutex.unlock();
        });
    (void)registered;
#endif
    if (!current_compiler() || current_compiler()->abandoned())
        current_compiler() = std::make_shared<Compiler>();
    return current_compiler();
}

/// Takes every lock of a compiler that does nothing just now, so that the child finds it whole. Waits a while for a
/// compile to end: the first one begins by itself when a device opens.
bool Compiler::pause_for_fork()
{
    if (m_abandoned || !m_mutex.try_lock_for(2s))
        return false;
    m_queue_mutex.lock();
    return true;
}

void Compiler::resume_after_fork()
{
    m_queue_mutex.unlock();
    m_mutex.unlock();
}

/// The thread that forked holds the locks, but under another id: they are made anew. Tasks that were waiting belong to
/// threads that the child lacks; they are kept, unrun, because they own objects of Slang.
void Compiler::restart_in_child()
{
    new (&m_mutex) std::recursive_timed_mutex;
    new (&m_queue_mutex) std::mutex;
    new (&m_queue_changed) std::condition_variable;
    new std::deque<std::shared_ptr<Task>>(std::move(m_queue));
    m_queue.clear();
    new std::shared_ptr<Task>(std::move(m_running));
    m_left_at = {};
    m_faults.forget();
    m_busy = m_started = m_paused = false;
}

void Compiler::set_hooks(Hooks value) { hooks = value; }

void Compiler::poll()
{
    if (hooks.poll)
        hooks.poll();
}

namespace {

void without_interpreter(const std::function<void()>& body)
{
    if (hooks.unlocked)
        hooks.unlocked(body);
    else
        body();
}

} // namespace

std::unique_lock<std::recursive_timed_mutex> Compiler::lock_politely(std::recursive_timed_mutex& mutex)
{
    std::unique_lock guard(mutex, std::try_to_lock);
    if (!guard.owns_lock())
        without_interpreter([&] {
            while (!guard.try_lock_for(50ms))
                poll();
        });
    return guard;
}

void Compiler::start_background()
{
    std::shared_ptr<Compiler> self = instance();
    auto task = std::make_shared<Task>();
    task->body = [self] { self->global_session(); };
    const std::lock_guard guard(self->m_queue_mutex);
    try {
        self->enqueue(task);
    } catch (const Error&) { // the first compile will say so, if one comes
    }
}

/// Under the queue's mutex. No task waits in the queue where there is no thread to take it.
void Compiler::enqueue(std::shared_ptr<Task> task)
{
    if (!m_started) {
        start_thread([self = shared_from_this()] { work(self); });
        m_started = true;
    }
    m_queue.push_back(std::move(task));
    m_queue_changed.notify_all();
}

void Compiler::drain()
{
    std::shared_ptr<Compiler> self;
    {
        const std::lock_guard guard(compiler_mutex);
        self = current_compiler();
    }
    closer = std::this_thread::get_id();
    if (!self || self->abandoned()) {
        closed = true;
        return;
    }
    std::unique_lock guard(self->m_queue_mutex);
    closed = true; // whoever is in the queue by now is waited for
    while (!self->m_abandoned && (self->m_busy || !self->m_queue.empty())) {
        self->m_queue_changed.wait_for(guard, 100ms);
        self->give_up_when_overdue();
    }
}

void Compiler::run_task(Compiler& self, Task& task)
{
    try {
        const Lock lock(self);
        FaultWatch::stay_on_top();
        task.body();
    } catch (...) {
        task.error = std::current_exception();
    }
    task.body = nullptr; // what the task owns must go before the caller goes on
    const std::lock_guard guard(task.mutex);
    task.done = true;
    task.finished.notify_all();
}

void Compiler::work(std::shared_ptr<Compiler> self)
{
    self->m_faults.begin();
    while (true) {
        std::shared_ptr<Task> task;
        {
            std::unique_lock guard(self->m_queue_mutex);
            self->m_busy = false;
            self->m_running = nullptr;
            self->m_left_at = {};
            self->m_queue_changed.notify_all();
            while (self->m_queue.empty() && !self->m_abandoned)
                if (self->m_queue_changed.wait_for(guard, 30s) == std::cv_status::timeout && hooks.idle)
                    hooks.idle();
            if (self->m_queue.empty()) {
                self->m_faults.end();
                return;
            }
            task = self->m_running = std::move(self->m_queue.front());
            self->m_queue.pop_front();
            self->m_busy = true;
        }
        run_task(*self, *task);
    }
}

/// Its caller will not come back: a task that has not begun never does.
void Compiler::leave(Task& task)
{
    const std::lock_guard guard(m_queue_mutex);
    if (m_running.get() == &task)
        m_left_at = std::chrono::steady_clock::now();
    std::erase_if(m_queue, [&](const std::shared_ptr<Task>& item) { return item.get() == &task; });
}

/// Under the queue's mutex.
void Compiler::give_up_when_overdue()
{
    const bool has_left = m_left_at != std::chrono::steady_clock::time_point();
    if (m_faults.fault().empty() && (!has_left || std::chrono::steady_clock::now() - m_left_at < patience))
        return;
    m_abandoned = true;
    m_queue_changed.notify_all();
}

namespace {

/// For a thread that the end of the process overtakes: `poll` throws when the interpreter is gone.
[[noreturn]] void wait_for_the_end()
{
    without_interpreter([] {
        while (true) {
            std::this_thread::sleep_for(50ms);
            Compiler::poll();
        }
    });
    std::terminate(); // not reached
}

[[noreturn]] void fail_abandoned() { fail_runtime("this compiler session was abandoned while it was compiling"); }

} // namespace

/// Under the queue's mutex, as the caller of the task.
void Compiler::fail_if_crashed(const Task& task)
{
    const std::string fault = m_faults.fault();
    if (fault.empty() || m_running.get() != &task)
        return;
    m_abandoned = true;
    m_queue_changed.notify_all();
    throw CompilerDeath("crash", cat("the Slang compiler crashed (", fault, ")"));
}

void Compiler::execute(std::function<void()> body)
{
    auto task = std::make_shared<Task>();
    task->body = std::move(body);
    {
        std::unique_lock guard(m_queue_mutex);
        if (m_abandoned)
            fail_abandoned();
        if (closed && std::this_thread::get_id() != closer) {
            guard.unlock();
            wait_for_the_end();
        }
        enqueue(task);
    }
    std::unique_lock guard(task->mutex);
    while (!task->finished.wait_for(guard, 50ms, [&] { return task->done; })) {
        guard.unlock();
        {
            const std::lock_guard queue(m_queue_mutex);
            fail_if_crashed(*task);
            give_up_when_overdue();
        }
        if (m_abandoned)
            fail_abandoned();
        try {
            poll();
        } catch (...) {
            leave(*task);
            throw;
        }
        guard.lock();
    }
    if (!task->error)
        return;
    try {
        std::rethrow_exception(task->error);
    } catch (const Error&) {
        throw;
    } catch (const std::exception& error) {
        fail(ErrorKind::slang_compile, "Slang failed inside: ", error.what());
    } catch (...) {
        fail(ErrorKind::slang_compile, "Slang failed inside: ", last_internal_error());
    }
}

void Compiler::acquire(bool may_throw)
{
    if (m_mutex.try_lock())
        return;
    bool locked = false;
    without_interpreter([&] {
        while (!m_abandoned && !(locked = m_mutex.try_lock_for(50ms))) {
            {
                const std::lock_guard queue(m_queue_mutex);
                give_up_when_overdue();
            }
            if (may_throw)
                poll();
        }
    });
    if (!locked)
        fail_abandoned();
}

slang::IGlobalSession* Compiler::global_session()
{
    if (!m_global_session) {
        prepare_heap(first_heap);
        const SlangGlobalSessionDesc desc = {};
        if (SLANG_FAILED(slang::createGlobalSession(&desc, m_global_session.put())))
            fail_runtime("the Slang compiler could not be started: ",
                         text_or_empty(slang::getLastInternalErrorMessage()));
    }
    return m_global_session.get();
}

std::string Compiler::last_internal_error() { return std::string(text_or_empty(slang::getLastInternalErrorMessage())); }

std::string Compiler::version() { return spGetBuildTagString(); }

std::string Compiler::prelude(const std::string& language)
{
    ComPtr<ISlangBlob> blob;
    const SlangSourceLanguage id = language == "cuda" ? SLANG_SOURCE_LANGUAGE_CUDA : SLANG_SOURCE_LANGUAGE_CPP;
    global_session()->getLanguagePrelude(id, blob.put());
    return blob_text(blob.get());
}

} // namespace spy
