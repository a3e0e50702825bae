package weir

import "sync"

// An item is an encoded entry. Numbers grow in the order of the calls.
type item struct {
	text   []byte
	number uint64
}

// overhead is what an item costs beside its text.
const overhead = 40

// A lane has the items of one level, oldest first.
type lane struct {
	items []item
	head  int
}

func (l *lane) len() int { return len(l.items) - l.head }

func (l *lane) push(i item) {
	if len(l.items) == cap(l.items) && l.head > len(l.items)/2 { // move to the front rather than grow
		n := copy(l.items, l.items[l.head:])
		clear(l.items[n:])
		l.items, l.head = l.items[:n], 0
	}
	l.items = append(l.items, i)
}

func (l *lane) pop() item {
	i := l.items[l.head]
	l.items[l.head] = item{}
	l.head++
	if l.len() == 0 {
		l.items, l.head = l.items[:0], 0
	}
	return i
}

// A queue holds entries that wait, bounded. A full one makes room for an entry
// by dropping the oldest of the lowest level below it; without one, the entry
// itself is dropped.
type queue struct {
	mu           sync.Mutex
	lanes        [levels]lane
	bytes, count int
	next         uint64 // number of the next entry
	inHand       uint64 // lowest number that was taken and is not done; 0 if none
	urged        uint64 // entries up to this number are not to wait for others
	shut         Reason // not empty: nothing is taken in

	limits Limits
	losses *losses
	wake   chan struct{}
}

func newQueue(limits Limits, l *losses) *queue {
	return &queue{limits: limits, losses: l, wake: make(chan struct{}, 1), next: 1}
}

func (q *queue) push(level int, text []byte) {
	size := len(text) + overhead
	if len(text) > maxEntry || size > q.limits.QueueBytes {
		q.losses.add(TooLarge, 1)
		return
	}
	q.mu.Lock()
	if q.shut != "" {
		reason := q.shut
		q.mu.Unlock()
		q.losses.add(reason, 1)
		return
	}
	evicted, fits := q.evict(level, size)
	if fits {
		q.lanes[level].push(item{text, q.next})
		q.next++
		q.bytes += size
		q.count++
	} else {
		evicted++
	}
	wake := q.count == 1 || q.full()
	q.mu.Unlock()
	if evicted > 0 {
		q.losses.add(QueueFull, evicted)
	}
	if wake {
		q.rouse()
	}
}

// evict makes room for an entry of a level.
func (q *queue) evict(level, size int) (evicted int, fits bool) {
	for low := 0; q.bytes+size > q.limits.QueueBytes || q.count >= q.limits.QueueEntries; {
		for low < level && q.lanes[low].len() == 0 {
			low++
		}
		if low >= level {
			return evicted, false
		}
		q.remove(low)
		evicted++
	}
	return evicted, true
}

func (q *queue) remove(lane int) item {
	i := q.lanes[lane].pop()
	q.bytes -= len(i.text) + overhead
	q.count--
	return i
}

func (q *queue) rouse() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// full says whether a batch can be filled. It needs the lock.
func (q *queue) full() bool {
	return q.count >= q.limits.BatchEntries || q.bytes >= q.limits.BatchBytes
}

// oldest returns the lane and the number of the oldest entry; without one,
// the next number. It needs the lock.
func (q *queue) oldest() (in int, number uint64) {
	in, number = -1, q.next
	for level := range q.lanes {
		if l := &q.lanes[level]; l.len() > 0 && l.items[l.head].number < number {
			in, number = level, l.items[l.head].number
		}
	}
	return in, number
}

// state says whether entries wait, and whether they should go at once.
func (q *queue) state() (some, now bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, number := q.oldest()
	return q.count > 0, q.full() || q.count > 0 && number <= q.urged
}

// take removes the entries of a batch, in the order of their calls. They are
// outstanding until done.
func (q *queue) take(most int) (items []item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	bytes := 0
	for len(items) < most {
		in, number := q.oldest()
		if in < 0 {
			break
		}
		l := &q.lanes[in]
		if bytes += len(l.items[l.head].text); bytes > q.limits.BatchBytes && len(items) > 0 {
			break
		}
		if len(items) == 0 {
			q.inHand = number
		}
		items = append(items, q.remove(in))
	}
	return items
}

// done says that what was taken is outstanding elsewhere.
func (q *queue) done() {
	q.mu.Lock()
	q.inHand = 0
	q.mu.Unlock()
}

// urge asks for all entries of up to now to be sent at once. It returns the
// number of the last.
func (q *queue) urge() uint64 {
	q.mu.Lock()
	q.urged = q.next - 1
	last := q.urged
	q.mu.Unlock()
	q.rouse()
	return last
}

// outstanding returns the lowest number in the queue and in hand.
func (q *queue) outstanding() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.inHand != 0 {
		return q.inHand
	}
	_, number := q.oldest()
	return number
}

// refuse takes nothing in from now on.
func (q *queue) refuse(reason Reason) {
	q.mu.Lock()
	q.shut = reason
	q.mu.Unlock()
	q.rouse()
}

// empty drops all that waits.
func (q *queue) empty(reason Reason) {
	q.mu.Lock()
	n := q.count
	q.lanes, q.bytes, q.count = [levels]lane{}, 0, 0
	q.mu.Unlock()
	q.losses.add(reason, n)
}

func (q *queue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count
}
