/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_LIBRARY_H
#define INFERENCE_LIBRARY_H

/*
 * Opens the library of an engine: in the folder that an environment variable names; else in
 * lib/frag/FOLDER beside frag's plugins, else where the dynamic linker looks. Returns NULL with
 * dlerror.
 */
void *inference_library_open(const char *variable, const char *folder, const char *name);

#endif
