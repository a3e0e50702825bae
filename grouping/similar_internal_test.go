package grouping

import "testing"

// Two traces are as much alike as the rare calls that they share.
func TestAlignment(t *testing.T) {
	var project [][]int32
	for range 100 {
		project = append(project, []int32{1, 2, 2})
	}
	r := RarityAmong(append(project, []int32{3, 1}))
	calls := []int32{3, 1, 2}
	query := r.Query(calls)
	same, rare, common := query.Alignment(calls), query.Alignment([]int32{3}), query.Alignment([]int32{1, 2})
	if same < 0.999 || same > 1 || rare <= common || common <= 0 {
		t.Errorf("alike: itself %v, by a rare call %v, by common ones %v", same, rare, common)
	}
	if none := query.Alignment([]int32{4}); none != 0 || r.Query(nil).Alignment(calls) != 0 {
		t.Errorf("alike without a common call: %v", none)
	}
}
