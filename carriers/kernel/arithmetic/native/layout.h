/* SPDX-License-Identifier: MIT OR GPL-2.0
 *
 * What a structure looks like to C, for the test that its mirror in Rust is the same.
 */
#ifndef RANPACE_LAYOUT_H
#define RANPACE_LAYOUT_H

#include <stddef.h>

struct field {
	const char *name; /* NULL at the end, where the offset is the size of the whole */
	size_t offset;
	size_t size;
};

#define FIELD(structure, member) \
	{ #member, offsetof(struct structure, member), sizeof(((struct structure *)0)->member) }
#define END(structure) \
	{ NULL, sizeof(struct structure), 0 }

#endif
