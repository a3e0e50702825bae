package cluster

// Operations are what a user may do with a topic or group, a bit each,
// by Kafka's numbers.
type Operations int32

// The operations that Weir needs. In Kafka, Read and Write include Describe.
const (
	Read            Operations = 1 << 3
	Write           Operations = 1 << 4
	Create          Operations = 1 << 5
	Delete          Operations = 1 << 6 // of a topic, also of its records
	Describe        Operations = 1 << 8
	DescribeConfigs Operations = 1 << 10
)

// unasked is the answer of a broker that reports no operations.
const unasked Operations = -1 << 31

// operations are all, by Kafka's names and numbers.
var operations = []struct {
	name   string
	number int8
}{{"Read", 3}, {"Write", 4}, {"Create", 5}, {"Delete", 6}, {"Describe", 8}, {"DescribeConfigs", 10}}

// Allow reports whether some operations are all allowed, or the
// brokers report none.
func (o Operations) Allow(some Operations) bool { return o == unasked || o&some == some }

// Names returns their names in Kafka's tools.
func (o Operations) Names() (names []string) {
	for _, operation := range operations {
		if o&(1<<operation.number) != 0 {
			names = append(names, operation.name)
		}
	}
	return names
}
