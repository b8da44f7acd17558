// Switching between stacks: what the fibers of groups are made of (src/native/cpu/fibers.cpp, kernels_fibers.h).
#pragma once

#include <string.h>

#if defined(__x86_64__)
asm(R"(
.text
.type spy_switch, @function
spy_switch:
    pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
    ret
.size spy_switch, .-spy_switch
)");
extern "C" void spy_switch(void** save, void* load);
static void* spy_first_frame(char* top, void (*entry)())
{
    void** at = reinterpret_cast<void**>(top) - 2; // the entry finds the stack as after a call
    *at = reinterpret_cast<void*>(entry);
    for (int i = 0; i < 6; i++)
        *--at = nullptr;
    return at;
}
#elif defined(__aarch64__)
asm(R"(
.text
.type spy_switch, %function
spy_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]; stp x21, x22, [sp, #16]; stp x23, x24, [sp, #32]; stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]; stp x29, x30, [sp, #80]; stp d8, d9, [sp, #96]; stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]; stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]; ldp x21, x22, [sp, #16]; ldp x23, x24, [sp, #32]; ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]; ldp x29, x30, [sp, #80]; ldp d8, d9, [sp, #96]; ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]; ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
.size spy_switch, .-spy_switch
)");
extern "C" void spy_switch(void** save, void* load);
static void* spy_first_frame(char* top, void (*entry)())
{
    char* at = top - 160;
    memset(at, 0, 160);
    memcpy(at + 88, &entry, sizeof(entry));
    return at;
}
#else
#error barriers and warp functions on the host need x86-64 or arm64
#endif
