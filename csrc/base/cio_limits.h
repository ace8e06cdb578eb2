/* SPDX-License-Identifier: MIT
 * cio_limits.h - every constant of the core, each with its reason and the
 * benchmark that set it.
 *
 * Units    Bytes, unless the name says otherwise.
 */
#ifndef CIO_LIMITS_H
#define CIO_LIMITS_H

#define CIO_KIB ((size_t)1 << 10)
#define CIO_MIB ((size_t)1 << 20)
#define CIO_GIB ((size_t)1 << 30)

/* The chunk that bytes pass through. 256 KiB reads fastest here (8K / 64K /
 * 256K / 1M / 4M: 7.3 / 8.1 / 8.3 / 7.9 / 7.3 GB/s); GNU coreutils measured
 * the same on eleven machines. benchmarks/test_io.py::chunk_size. */
#define CIO_CHUNK_NBYTES (256 * CIO_KIB)

/* One read or write call moves at most this much before the caller looks at
 * signals: a write(2) of 64 MiB holds one for 70 ms. */
#define CIO_SLICE_NBYTES (8 * CIO_MIB)
#define CIO_SLICE_MIN_NBYTES (64 * CIO_KIB)
/* A slice that took longer is halved for the next call: slow devices. */
#define CIO_SLICE_MAX_NS 50000000L

/* A piece that one thread of a parallel read claims: small enough that both
 * end together, large enough that claiming costs nothing. Must not exceed a
 * slice. benchmarks/test_io.py::parallel. */
#define CIO_PIECE_NBYTES (2 * CIO_MIB)

/* From here what is written is not copied into an empty chunk: immutable bytes
 * are kept where they are until they are flushed, other memory is written at
 * once (the copy costs 3 us of 4 at 100 kB), unless the chunk is larger than
 * usual and was asked for to gather more: then from this share of it on.
 * benchmarks/test_io.py::ten_lengths. */
#define CIO_ADOPT_NBYTES (16 * CIO_KIB)
#define CIO_DIRECT_SHARE 16

/* A file below this is opened, read and closed in one go, into the stack and
 * from there into its result: the copy costs less than giving the interpreter
 * lock up and taking it back once more. benchmarks/test_io.py::small. */
#define CIO_SMALL_NBYTES (16 * CIO_KIB)

/* Reads up to this size first ask the page cache under the interpreter lock:
 * it takes 30 us at most, giving the lock up and back costs 1 ms and more
 * beside a busy thread. benchmarks/test_io.py::busy_thread. */
#define CIO_NOWAIT_NBYTES (256 * CIO_KIB)

/* A request of this size goes straight to its target, past the chunk: from
 * here the call costs no more than the copy (8K / 16K / 32K by the chunk: 1.55
 * / 1.1 / 0.95 of a call each). benchmarks/test_io.py::direct. */
#define CIO_DIRECT_NBYTES (32 * CIO_KIB)

/* No call asks the kernel for more: copy_file_range over 2 GiB is corrupted by
 * glibc 2.41 and 2.42, FUSE counts in 32 bits, read(2) stops at 2 GiB - 4096.
 */
#define CIO_CALL_MAX_NBYTES CIO_GIB

/* Growth of a buffer whose end isn't known: double, but from here 1.5x, since
 * the unused half of a doubled one is real memory once huge pages back it. */
#define CIO_GROW_FIRST_NBYTES (16 * CIO_KIB)
#define CIO_GROW_SLOW_NBYTES (64 * CIO_MIB)

/* A window of the mapped route, populated at once: 64 MiB in windows of 256K /
 * 1M / 2M / 8M cost 17.7 / 15.4 / 14.0 / 14.0 ms of CPU time on ext4, 36 ms
 * each on tmpfs. benchmarks/test_transfer.py::test_mapped_crossing. */
#define CIO_WINDOW_NBYTES (2 * CIO_MIB)

/* One write of a window: ext4 makes page cache of that much at a time, and in
 * a fragmented memory pieces of 2 MiB have to be compacted first (1 GB: 257 ms
 * by 512 KiB, 942 ms by 2 MiB); else both are the same. */
#define CIO_WINDOW_WRITE_NBYTES (512 * CIO_KIB)

/* From here auto asks for the target's blocks before it copies, where that
 * pays (ext4): 1 / 10 / 100 MB in 0.20 / 1.9 / 20 ms in place of 0.27 / 2.5 /
 * 26; with fsync 5-8 % less. Below 2 MiB a file that is removed at once would
 * cost more than that. benchmarks/test_transfer.py::test_lengths_of_the_jdk.
 * A call reserves so much at most, a few ms. */
#define CIO_RESERVE_NBYTES (2 * CIO_MIB)
#define CIO_RESERVE_MAX_NBYTES CIO_GIB

/* A kernel copy while somebody wants to see progress: under 50 ms at
 * page-cache speed. */
#define CIO_CALL_PROGRESS_NBYTES (16 * CIO_MIB)

/* What a hole is made of at least: the block of every common file system. */
#define CIO_BLOCK_NBYTES 4096

/* Zeros that are written where a hole can't be punched, in one call. */
#define CIO_ZEROS_NBYTES (16 * CIO_KIB)

/* Linux keeps no extended attribute, and no list of their names, above this
 * (XATTR_SIZE_MAX, XATTR_LIST_MAX). */
#define CIO_XATTR_NBYTES (64 * CIO_KIB)

/* DEFLATE can't expand more: RFC 1951 length 258 from at least 2 bits. */
#define CIO_DEFLATE_MAX_RATIO 1032

/* What is read of an archive's end at first: the end records, and a small
 * archive's directory with them. A page cache copy of 16 KiB takes 2 us. */
#define CIO_ZIP_TAIL_NBYTES (16 * CIO_KIB)

/* Members of a directory walked before the caller looks at signals. */
#define CIO_ZIP_WALK_MEMBERS 65536

/* A local header's extra field is often longer than the directory's (times,
 * owners): what one read adds to the directory's for it. */
#define CIO_ZIP_EXTRA_SLACK 64

/* Header and data up to this size are read to the stack. */
#define CIO_ZIP_TINY_NBYTES (4 * CIO_KIB)

/* Members up to this that are read in the order of the file come by calls of
 * CIO_ZIP_AHEAD_NBYTES: 0.4 us less for one of 1 KiB, 0.8 us for one of 16.
 * benchmarks/test_zip.py::read. */
#define CIO_ZIP_IN_ORDER_NBYTES (16 * CIO_KIB)

/* Members up to this are read together with their neighbours where a thread
 * claimed several. benchmarks/test_zip.py::read_many. */
#define CIO_ZIP_NEAR_NBYTES (64 * CIO_KIB)

/* Stored members up to this size are read together with their header and
 * copied: a copy of 8 KiB costs less than another call. */
#define CIO_ZIP_COPY_NBYTES (8 * CIO_KIB)

/* Deflated members are inflated whole (libdeflate needs all input) up to this
 * much input and output: 10 ms of work. Output beyond the second is taken on
 * a header's word only up to so many times the input. */
#define CIO_ZIP_WHOLE_IN_NBYTES (4 * CIO_MIB)
#define CIO_ZIP_WHOLE_OUT_NBYTES (16 * CIO_MIB)
/* A caller that waits for one member gets more inflated at once: its output
 * may be CIO_INFLATE_WHOLE_MAX_NBYTES, its input this much, which is taken
 * beside it. benchmarks/test_users.py::npz. */
#define CIO_ZIP_ALONE_IN_NBYTES (32 * CIO_MIB)
#define CIO_ZIP_TRUST_NBYTES CIO_MIB
#define CIO_ZIP_TRUST_RATIO 64

/* An opened member up to this size is inflated whole at its first read. */
#define CIO_ZIP_OPEN_WHOLE_NBYTES (256 * CIO_KIB)

/* Up to this size a member is read and inflated with the GIL held, when the
 * page cache has it: about 25 us, against 1 ms and more that a released GIL
 * costs beside a busy thread. */
#define CIO_ZIP_ATTACHED_NBYTES (32 * CIO_KIB)

/* An inflate call gets this much room, so that its output is still in the
 * second cache when the checksum reads it; ISA-L copies up to 96 KiB for each
 * call, 32 KiB and less cost every engine. benchmarks/test_gzip.py::piece. */
#define CIO_INFLATE_PIECE_NBYTES (512 * CIO_KIB)
/* A whole-buffer engine can't be stopped: 64 MiB take it 50 ms. */
#define CIO_INFLATE_WHOLE_MAX_NBYTES (64 * CIO_MIB)
/* Members up to this are tried at once, where the one before was so small.
 * benchmarks/test_gzip.py::members. */
#define CIO_INFLATE_SMALL_NBYTES (16 * CIO_KIB)
#define CIO_INFLATE_SMALL_OUT_NBYTES (64 * CIO_KIB)
/* No BGZF block holds more (SAM/BAM format specification). */
#define CIO_BGZF_BLOCK_NBYTES (64 * CIO_KIB)
/* Blocks inflated ahead, for each thread: packed bytes, data, and how many
 * (small ones). Two threads hold 4 MiB with the view, of the 8 MiB that they
 * may. A view is what was read last and can be gone back to.
 * benchmarks/test_gzip.py::bgzf. */
#define CIO_BGZF_IN_NBYTES (512 * CIO_KIB)
#define CIO_BGZF_OUT_NBYTES CIO_MIB
#define CIO_BGZF_VIEW_NBYTES CIO_MIB
#define CIO_BGZF_QUEUE_BLOCKS 64
/* Compressed pieces up to this are inflated with the GIL held: some 15 us. */
#define CIO_INFLATE_ATTACHED_NBYTES (4 * CIO_KIB)
/* What a stream has at hand up to this is inflated so, too, and a file read so
 * where the page cache has it, up to CIO_INFLATE_SMALL_OUT_NBYTES of data:
 * some 70 us, against 5 ms that a released GIL costs beside a busy thread.
 * benchmarks/test_gzip.py::small_files. */
#define CIO_INFLATE_AT_HAND_NBYTES (16 * CIO_KIB)
/* A size field may ask for this many times the compressed bytes at once;
 * beyond it memory follows what arrives. Text packs 3 to 10 times. */
#define CIO_SIZE_HINT_RATIO 16

/* A source without descriptor is asked for this much at once: few calls where
 * each may be a request over a network, and neighbours come along. So is a
 * descriptor whose members are read in order. */
#define CIO_ZIP_AHEAD_NBYTES (64 * CIO_KIB)

/* What an opened member reads ahead when too many are open for a chunk each:
 * for peek and readline; read goes past it. */
#define CIO_ZIP_LEAN_NBYTES (4 * CIO_KIB)

/* A batch of members: one release of the GIL for each, and the next is read
 * while it is handed out. More than 1-2 MiB of results at a time leave the L2
 * cache and ask for fresh pages; 256 / 512 / 1024 of 1 KiB take 2.6 / 2.15 /
 * 2.18 us each. benchmarks/test_zip.py::read_many. */
#define CIO_ZIP_BATCH_MEMBERS 512
#define CIO_ZIP_BATCH_NBYTES (2 * CIO_MIB)
/* testzip keeps no results: its batches only bound how often it looks. */
#define CIO_ZIP_TEST_NBYTES (64 * CIO_MIB)

/* Idle memory that the pool may keep: 30 ISA-L states with their buffers. */
#define CIO_POOL_LIMIT_NBYTES (8 * CIO_MIB)

/* Beyond this more threads only wait for the same memory bus. */
#define CIO_WORKERS_MAX 8

/* What a caller may ask for by number; more only costs. */
#define CIO_THREADS_MAX 64

/* A thread that waits for workers wakes up this often to look at signals. */
#define CIO_WAIT_MS 20

/* From here read_bytes uses several threads, and results ask for huge pages
 * (below 16 MiB malloc hands out warm memory and the advice costs more than it
 * brings). benchmarks/test_io.py::parallel, ::huge_pages. */
#define CIO_PARALLEL_NBYTES (16 * CIO_MIB)
#define CIO_HUGE_PAGES_NBYTES (16 * CIO_MIB)
/* One huge page: what a worker makes ready at once. */
#define CIO_PREFAULT_PIECE_NBYTES (2 * CIO_MIB)

/* mmap + write(2) breaks even with the chunked loop near 8 MiB on tmpfs and
 * between 2 and 4 MiB on ext4; from 8 MiB on it wins on both, by 1.05x and
 * 1.15x. benchmarks/test_transfer.py::test_mapped_crossing, plots.py. */
#define CIO_MAPPED_NBYTES (8 * CIO_MIB)

/* Open folders that one thread keeps while it extracts: the depth of most
 * trees and a few beside; 8 threads stay far below 1,024 descriptors. */
#define CIO_TREE_FOLDERS 16
/* The kernel refuses longer paths in one call (PATH_MAX); folders nested
 * deeper could be made name by name, but no other program removes them. */
#define CIO_PATH_NBYTES 4096

/* A typed stream's buffer: from 16 KiB on one write per full buffer costs less
 * than a tenth of composing the values. benchmarks/test_data.py. The least one
 * holds any scalar with its prefix. */
#define CIO_DATA_BUFFER_NBYTES (64 * CIO_KIB)
#define CIO_DATA_BUFFER_LEAST_NBYTES 64
/* What ShortReadError keeps of a value that the source did not finish. */
#define CIO_DATA_PARTIAL_NBYTES (64 * CIO_KIB)

/* Members that a thread claims at once while it extracts, and the bytes of a
 * large one between two looks at signals: 4 MiB are 10 ms.
 * benchmarks/test_zip_extract.py. */
#define CIO_EXTRACT_RUN 16
#define CIO_EXTRACT_BATCH 512
#define CIO_EXTRACT_SLICE_NBYTES (4 * CIO_MIB)

#endif
