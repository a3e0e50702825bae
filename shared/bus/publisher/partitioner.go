package publisher

// partitionOf returns a key's partition by Java's default partitioner,
// so that all producers of a topic agree. n >= 1.
func partitionOf(key string, n int) int {
	return int(murmur2(key)&0x7fffffff) % n
}

// murmur2 is MurmurHash2 by Austin Appleby in the variant of
// org.apache.kafka.common.utils.Utils.murmur2.
func murmur2(data string) uint32 {
	const (
		seed = 0x9747b28c
		m    = 0x5bd1e995
		r    = 24
	)
	h := uint32(seed) ^ uint32(len(data))
	for ; len(data) >= 4; data = data[4:] {
		k := uint32(data[0]) | uint32(data[1])<<8 | uint32(data[2])<<16 | uint32(data[3])<<24
		k *= m
		k ^= k >> r
		k *= m
		h = h*m ^ k
	}
	switch len(data) {
	case 3:
		h ^= uint32(data[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(data[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(data[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}
