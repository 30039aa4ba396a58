/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_PYTHON_H
#define CTL_PYTHON_H

/*
 * Lets this process know the operator types of modules in Python, which it does not run: the
 * interpreter (FRAG_PYTHON, python3) lists them, `python -m frag.types FILE`.
 */
void ctl_python_begin(void);

#endif
