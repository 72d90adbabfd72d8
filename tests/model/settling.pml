/* How a batch settles: app/ledger/settle.py, adapters/dynamodb/words.py and adapters/dynamodb/batches.py.

   One access to a store is one atomic step, and a process may die before any of them. Between two accesses a
   process only computes, so that belongs to the step before. The tree has words of WIDTH bits on level 0, the
   root of the largest batch on level 1, and the word above it, which ackers of an open batch reach.

   Macros choose the run (python -m tests.model):
     ACKERS, ITEMS     how many ackers, and how many items at most
     ADDED             how many of the items were added before it begins
     REAPER, HEALER, ENDER, NOTIFIER   who else is there; the ender cancels the batch, or is its deadline
     DEATHS=n          processes may die, n times in all; MORTAL: any number of times
     IDLE              the reaper may find the batch idle, and orphans it
     AT_ONCE, AT_REST, EVENTUALLY   what is asked besides the assertions
     BREAK_...         leaves one rule out, to show that the model would notice
*/

#ifdef BREAK_HEALER
#undef HEALER
#endif
#ifdef BREAK_REAPER
#undef REAPER
#endif
#ifndef WIDTH
#define WIDTH 2
#endif
#ifndef ACKERS
#define ACKERS 2
#endif
#ifndef ITEMS
#define ITEMS 4
#endif

#ifndef ADDED
#define ADDED 0
#endif

#define FULL ((1 << WIDTH) - 1)

/* States of a batch; those above CLOSED are terminal. */
#define OPEN 0
#define CLOSED 1
#define COMPLETE 2
#define CANCELLED 3
#define TIMED_OUT 4
#define ORPHANED 5

/* domain/tree.py, for levels 0 and 1 of at most WIDTH * WIDTH items. */
#define ROOT(n) ((n) > WIDTH -> 1 : 0)
#define LAST(n) (((n) - 1) / WIDTH)
#define PREFIX(k) ((1 << (k)) - 1)
#define RESIDUE0(i, n) ((i) != LAST(n) -> 0 : FULL & ~PREFIX((n) - LAST(n) * WIDTH))
#define RESIDUE1(n) (FULL & ~PREFIX(LAST(n) + 1))
#define COUNT(word) (((word) & 1) + ((word) >> 1 & 1) + ((word) >> 2 & 1) + ((word) >> 3 & 1))
#define CHILDREN(word) COUNT((word) ^ FULL)
#define IS_PREFIX(word) ((word) == (FULL & ~PREFIX(CHILDREN(word))))
#define MAY_BE_LAST0(i, word, n) (IS_PREFIX(word) && ((n) < 1 || (i) > LAST(n) || \
    ((i) == LAST(n) && CHILDREN(word) >= (n) - LAST(n) * WIDTH)))
#define MAY_BE_LAST1(word, n) (IS_PREFIX(word) && ((n) < 1 || CHILDREN(word) >= LAST(n) + 1))

#define WORD_OF(set, i) ((set) >> ((i) * WIDTH) & FULL)
#define ITEMS_OF(i, mask) ((mask) << ((i) * WIDTH))

/* The rows. */
byte state = OPEN;
byte items = ADDED;
byte leaf[WIDTH] = FULL;
byte root = FULL;
byte above = FULL;

/* Streams: words that became 0, and ends of the batch (one bit a state). */
byte finished = 0;
#define FINISHED_ROOT (1 << WIDTH)
byte ended = 0;

/* What exists beside fanin: messages of items that nobody has deleted, and the events on the bus. */
int messages = PREFIX(ADDED);
byte told = 0;

/* Known to the model alone: items that a call has marked by its own bit, or by a range. */
int marked = 0;

/* Before an access a process may die. */
#if defined(DEATHS)
byte deaths = DEATHS;
#define HERE if :: true :: deaths > 0 -> deaths--; goto died fi
#elif defined(MORTAL)
#define HERE if :: true :: goto died fi
#else
#define HERE skip
#endif

/* One conditional write that ends the batch; it answers with the row as it is afterwards. */
#ifdef BREAK_END_CONDITION
#define MAY_END(sources) true
#else
#define MAY_END(sources) (sources)
#endif
inline move(sources, to) {
    if
    :: MAY_END(sources) -> assert(state <= CLOSED);  /* a terminal state is never left */
        state = to;
        ended = ended | 1 << to
    :: else
    fi;
    seen_state = state;
    seen_items = items
}

inline complete() {
    atomic {
        HERE;
        move(state == CLOSED, COMPLETE);
        if
        :: state == COMPLETE -> assert(items == 0 || (marked & PREFIX(items)) == PREFIX(items))
        :: else
        fi
    }
}

/* A strongly consistent read of the batch row. */
inline look() {
    atomic { HERE; seen_state = state; seen_items = items }
}

inline look_again() {
    if
    :: seen_state == OPEN -> look()
    :: else
    fi
}

/* Clear the bits of mask: one conditional write, and another one if some of them were clear. The answer to a
   write may be lost, and AWS's SDK then sends it again. */
#ifdef BREAK_CLEAR_CONDITION
#define PENDING(word, mask) true
#define CLEARED(word, mask) ((word - mask) & FULL)
#else
#define PENDING(word, mask) ((word & mask) == mask)
#define CLEARED(word, mask) (word & ~mask)
#endif
inline clear(row, bits, theirs, zero, answer) {
    do
    :: atomic {
        PENDING(row, bits) -> HERE;
        row = CLEARED(row, bits);
        marked = marked | theirs;
#ifdef HEALER
        if
        :: row == 0 -> finished = finished | zero
        :: else
        fi;
#endif
        if
        :: answer = row; bits = 0; break
#ifdef MORTAL
        :: true  /* the answer is lost */
#endif
        fi }
    :: atomic {
        !PENDING(row, bits) -> HERE;
        duplicate = true;
        bits = bits & row;
        if
        :: bits == 0 -> answer = row; break
        :: else
        fi }
    od
}

/* Whether a word that a write or a read has answered is done (_done); the answer is in up. */
#ifdef BREAK_SECOND_LOOK
#define SECOND_LOOK skip
#else
#define SECOND_LOOK look_again()
#endif
#ifdef BREAK_OPEN_SIZE
#define SIZE_IS_FINAL true
#else
#define SIZE_IS_FINAL seen_state != OPEN
#endif
inline judge(value, residue, doubtful) {
    if
    :: value == 0 -> up = true
    :: value != 0 && SIZE_IS_FINAL -> up = (seen_items > 0 && value == residue)
    :: value != 0 && !(SIZE_IS_FINAL) && doubtful ->
        SECOND_LOOK;
        up = (seen_state != OPEN && seen_items > 0 && value == residue)
    :: else -> up = false
    fi
}

inline complete_if_closed() {
    if
    :: seen_state == CLOSED -> complete()
    :: else
    fi
}

/* The word above the root of the largest batch; its second bit stands for no word. */
inline carry_above() {
    mask = 1;
    clear(above, mask, 0, 0, word);
    look_again();
    complete_if_closed()
}

/* Clear the bits of mask1 in the root, and go on from there (settle, levels 1 and 2). */
inline carry() {
    if
    :: mask1 == 0
    :: else ->
        if
        :: (mask1 & ahead) == 0 -> word = ahead
        :: else -> mask1 = mask1 & ahead; clear(root, mask1, ghost1, FINISHED_ROOT, word)
        fi;
        judge(word, RESIDUE1(seen_items), MAY_BE_LAST1(word, seen_items));
        if
        :: up && seen_state != OPEN -> complete_if_closed()
        :: up && seen_state == OPEN -> carry_above()
        :: else
        fi
    fi
}

/* Complete a closed batch from the last word of each level (finish). */
inline finish() {
    if
    :: seen_state != CLOSED
    :: seen_state == CLOSED && seen_items == 0 -> complete()
    :: seen_state == CLOSED && seen_items > 0 ->
        if
        :: ROOT(seen_items) == 0 ->
            atomic { HERE; word = leaf[LAST(seen_items)] };
            if
            :: word == RESIDUE0(LAST(seen_items), seen_items) -> complete()
            :: else
            fi
        :: else ->
            /* One request reads both, but not at one moment. */
            if
            :: atomic { HERE; word = leaf[LAST(seen_items)] }; atomic { HERE; ahead = root }
            :: atomic { HERE; ahead = root }; atomic { HERE; word = leaf[LAST(seen_items)] }
            fi;
            if
            :: ahead == RESIDUE1(seen_items) -> complete()
            :: ahead != RESIDUE1(seen_items) && word == RESIDUE0(LAST(seen_items), seen_items) ->
                mask1 = 1 << LAST(seen_items) & ahead;
                carry()
            :: else
            fi
        fi
    fi
}

#define ROW byte seen_state; byte seen_items
#define SCRATCH byte word; byte mask; byte mask1; byte ahead = FULL; byte ghost1; bool up; bool duplicate
#define FORGET atomic { seen_state = 0; seen_items = 0; word = 0; mask = 0; mask1 = 0; ahead = FULL; ghost1 = 0; up = false; duplicate = false }

/* Marks items in one request, by their ids or as ranges. Until all is done their messages stay, so that they
   come again, to this acker or to another. Any time may pass after it has read the batch row, so the row that it
   remembers may be as old as one likes. */
proctype Acker() {
    ROW;
    SCRATCH;
    byte wanted;
    byte mask0[WIDTH];
    byte found[WIDTH] = FULL;
    byte done;
    byte i;
end:
    do
    :: atomic { messages != 0 ->
            /* Any of the messages that there are, at least one. */
            do
            :: i < ITEMS ->
                if
                :: messages >> i & 1 -> wanted = wanted | 1 << i
                :: !(messages >> i & 1) || wanted != 0 || messages >> (i + 1) != 0
                fi;
                i++
            :: i >= ITEMS -> i = 0; break
            od;
            HERE;
            seen_state = state;
            seen_items = items;
            if
            :: seen_state > CLOSED -> messages = messages & ~wanted; goto forget  /* too late */
            :: else
            fi;
            do
            :: i < WIDTH -> mask0[i] = WORD_OF(wanted, i); i++
            :: i >= WIDTH -> i = 0; break
            od;
            if
            :: true
            :: ROOT(seen_items) == 1 && WORD_OF(wanted, 0) != wanted ->
                /* A range over more than one word: whole words are bits of the root (cover). */
                do
                :: i < WIDTH && mask0[i] == FULL -> mask1 = mask1 | 1 << i; ghost1 = ghost1 | ITEMS_OF(i, FULL); mask0[i] = 0; i++
                :: i < WIDTH && mask0[i] != FULL -> i++
                :: i >= WIDTH -> i = 0; break
                od
            fi;
        };
#ifdef BREAK_CHILD_FIRST
        /* The parent before the child that this call will finish. */
        atomic {
            do
            :: i < WIDTH && mask0[i] != 0 && leaf[i] == mask0[i] -> mask1 = mask1 | 1 << i; i++
            :: i < WIDTH && !(mask0[i] != 0 && leaf[i] == mask0[i]) -> i++
            :: i >= WIDTH -> i = 0; break
            od
        };
        carry();
        d_step { mask1 = 0; ahead = FULL };
#endif
        do
        :: mask0[0] != 0 -> clear(leaf[0], mask0[0], ITEMS_OF(0, mask0[0]), 1, found[0])
        :: mask0[1] != 0 -> clear(leaf[1], mask0[1], ITEMS_OF(1, mask0[1]), 2, found[1])
#if WIDTH > 2
        :: mask0[2] != 0 -> clear(leaf[2], mask0[2], ITEMS_OF(2, mask0[2]), 4, found[2])
#endif
        :: else -> break
        od;
        if
        :: duplicate && mask1 != 0 -> atomic { HERE; ahead = root }  /* a range that meets done items */
        :: else
        fi;
        atomic {
            do
            :: i < WIDTH ->
                if
                :: found[i] == 0 -> done = done | 1 << i
                :: found[i] != 0 && found[i] != FULL && SIZE_IS_FINAL ->
                    done = (found[i] == RESIDUE0(i, seen_items) -> done | 1 << i : done)
                :: found[i] != 0 && found[i] != FULL && !(SIZE_IS_FINAL) ->
                    up = up || MAY_BE_LAST0(i, found[i], seen_items)
                :: else
                fi;
                i++
            :: i >= WIDTH -> i = 0; break
            od
        };
        if
        :: up -> SECOND_LOOK
        :: else
        fi;
        atomic {
            do
            :: i < WIDTH && up && seen_state != OPEN && found[i] != FULL && found[i] == RESIDUE0(i, seen_items) ->
                done = done | 1 << i; i++
            :: i < WIDTH && !(up && seen_state != OPEN && found[i] != FULL && found[i] == RESIDUE0(i, seen_items)) -> i++
            :: i >= WIDTH -> i = 0; up = false; break
            od;
            found[0] = FULL;
            found[1] = FULL;
#if WIDTH > 2
            found[2] = FULL;
#endif
            if
            :: seen_state != OPEN && ROOT(seen_items) == 0
            :: else -> mask1 = mask1 | done; done = 0
            fi
        };
        if
        :: done != 0 -> complete_if_closed()
        :: else
        fi;
        carry();
        atomic { messages = messages & ~wanted; goto forget };
died:
        atomic {
            /* The messages come again; of a caller that nothing makes repeat, only the marks remain. */
            if
            :: true
            :: (marked & wanted) == wanted -> messages = messages & ~wanted
            fi;
forget:
            seen_state = 0; seen_items = 0; i = 0; done = 0; wanted = 0; mask0[0] = 0; mask0[1] = 0; found[0] = FULL; found[1] = FULL;
#if WIDTH > 2
            mask0[2] = 0; found[2] = FULL;
#endif
            word = 0; mask = 0; mask1 = 0; ahead = FULL; ghost1 = 0; up = false; duplicate = false
        }
    od
}

/* Adds items, and closes the batch. If it dies while it closes, it repeats the close, or never does. From then
   on it is the reaper, which looks at live batches that are due, and with IDLE orphans those that are idle. */
proctype Closer() {
    ROW;
    SCRATCH;
    byte paged;
    do
    :: atomic { state == OPEN && items < ITEMS -> messages = messages | 1 << items; items++ }
    :: break
    od;
again:
    atomic {
        HERE;
        if
        :: state == OPEN -> state = CLOSED
        :: else
        fi;
        seen_state = state;
        seen_items = items
    };
#ifndef BREAK_EDGE
    finish();
#endif
    goto over;
died:
    FORGET;
    if
    :: paged == 0 -> goto again
    :: state != OPEN
    fi;
over:
    FORGET;
#ifdef REAPER
    paged = 1;
end:
    do
    :: atomic { state <= CLOSED -> seen_state = state; seen_items = items; paged = 1 + state };
        finish();
#ifdef IDLE
        if
        :: true
        :: seen_state <= CLOSED -> atomic { HERE; move(1 + state == paged, ORPHANED) }
        fi;
#endif
        atomic { paged = 1; FORGET }
    od
#endif
}

#ifdef HEALER
/* Takes finished words from the stream, each again until it is handled (heal). */
proctype Healer() {
    ROW;
    SCRATCH;
    byte record;
end:
    do
    :: atomic { finished != 0 ->
            if
            :: finished & 1 -> record = 1
            :: finished & 2 -> record = 2
#if WIDTH > 2
            :: finished & 4 -> record = 4
#endif
            :: finished & FINISHED_ROOT -> record = FINISHED_ROOT
            fi;
            HERE;
            if
            :: seen_state = state; seen_items = items
            :: seen_items = items  /* a row from before the close */
            :: items > 1 -> seen_items = 1
            fi };
        up = true;
        if
        :: record != FINISHED_ROOT ->
            if
            :: ROOT(seen_items) == 0 -> look_again()
            :: else
            fi;
            if
            :: seen_state != OPEN && ROOT(seen_items) == 0 -> complete_if_closed(); up = false
            :: else ->
                atomic { HERE; word = root };
                if
                :: word & record -> mask1 = record; carry(); up = false
                :: else -> judge(word, RESIDUE1(seen_items), MAY_BE_LAST1(word, seen_items))
                fi
            fi
        :: else
        fi;
        if
        :: up ->
            look_again();
            if
            :: seen_state != OPEN -> complete_if_closed()
            :: else ->
                atomic { HERE; word = above };
                if
                :: word & 1 -> carry_above()
                :: else -> look_again(); complete_if_closed()
                fi
            fi
        :: else
        fi;
        finished = finished & ~record;
died:
        atomic { record = 0; seen_state = 0; seen_items = 0; word = 0; mask = 0; mask1 = 0; ahead = FULL; ghost1 = 0; up = false; duplicate = false }
    od
}
#endif

#ifdef NOTIFIER
/* Puts the end on the bus, until it has the answer. */
proctype Notifier() {
    byte which;
end:
    do
    :: atomic { ended != 0 ->
            if
            :: ended & 1 << COMPLETE -> which = COMPLETE
            :: ended & 1 << CANCELLED -> which = CANCELLED
            :: ended & 1 << TIMED_OUT -> which = TIMED_OUT
            :: ended & 1 << ORPHANED -> which = ORPHANED
            fi;
            HERE;
            told = told | 1 << which;
            assert(told == 1 << state) };
        atomic { HERE; ended = ended & ~(1 << which) };
died:
        which = 0
    od
}
#endif

#ifdef ENDER
/* Somebody cancels the batch, or its deadline comes: once, at any time. */
proctype Ender() {
    ROW;
    SCRATCH;
    if
    :: atomic { HERE; move(state <= CLOSED, CANCELLED) }
    :: look();
        finish();
        if
        :: seen_state <= CLOSED -> atomic { HERE; move(state <= CLOSED, TIMED_OUT) }
        :: else
        fi
    :: true
    fi;
died:
    FORGET
}
#endif

#ifdef AT_ONCE
/* Nobody has anything left to do: the last of them has completed the batch. */
active proctype AtOnce() {
    timeout -> assert(state == COMPLETE)
}
#endif

#ifdef AT_REST
/* All have come to their end, however often they died: one look by the reaper completes the batch. */
active proctype LastLook() {
    ROW;
    SCRATCH;
    timeout;
again:
    look();
#ifndef BREAK_REAPER
    finish();
#endif
    assert(state == COMPLETE);
    goto over;
died:
    FORGET;
    goto again;
over:
    skip
}
#endif

init {
    byte n;
    atomic {
        do
        :: n < ACKERS -> run Acker(); n++
        :: else -> break
        od;
        run Closer();
#ifdef HEALER
        run Healer();
#endif
#ifdef NOTIFIER
        run Notifier();
#endif
#ifdef ENDER
        run Ender();
#endif
    }
}

#ifdef EVENTUALLY
ltl eventually { <> (state == COMPLETE) }
#endif
