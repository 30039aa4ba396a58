/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_CORE_HOST_EXIT_H
#define WRK_CORE_HOST_EXIT_H

/*
 * The exit status of a fraghost when an operator broke off its orderly end, and when it has lost
 * its workerd.
 */
#define WRK_HOST_EXIT_BROKEN_OFF 1
#define WRK_HOST_EXIT_LOST 3

#endif
