package snapshot

import "math/bits"

// The keys of the known records, interned first, so that a key is a small
// number and a record is recognized by a mask of them.
const (
	kNoKey = iota // string 0 is "absent"
	kEmpty        // ""

	// events
	kAction
	kAddr
	kSize
	kStream
	kTimeUS
	kFrames
	kDeviceFree
	kCompileContext
	kUserMetadata
	kPoolID
	kCategory

	// frames
	kFilename
	kLine
	kName

	// blocks
	kRequestedSize
	kAddress
	kState
	kHistory

	// segments
	kDevice
	kTotalSize
	kAllocatedSize
	kActiveSize
	kSegmentType
	kSegmentPoolID
	kIsExpandable
	kBlocks

	// history entries of 1.13 and 2.0
	kRealSize

	// annotations
	kStage

	// the top level
	kSegments
	kDeviceTraces
	kAllocatorSettings
	kExternalAnnotations
	kHostSegments
	kHostTraces

	numKeys

	// The names of actions and states follow the keys.
	firstAction = numKeys
	firstState  = firstAction + int(OtherAction)
	numKnown    = firstState + int(UnknownState) + 1
)

var keyNames = [numKeys]string{
	"", "", "action", "addr", "size", "stream", "time_us", "frames", "device_free", "compile_context", "user_metadata",
	"pool_id", "category", "filename", "line", "name", "requested_size", "address", "state", "history", "device",
	"total_size", "allocated_size", "active_size", "segment_type", "segment_pool_id", "is_expandable", "blocks",
	"real_size", "stage", "segments", "device_traces", "allocator_settings", "external_annotations", "host_segments",
	"host_traces",
}

// knownStrings are interned before a file is read, so that their ids are the
// constants above.
func knownStrings() []string {
	out := append(keyNames[:], actionNames[:OtherAction]...)
	out = append(out, stateNames[:UnknownState]...)
	return append(out, "active_awaiting_free") // as the docstrings call Pending
}

func actionOf(id StringID) Action {
	if a := int(id) - firstAction; a >= 0 && a < int(OtherAction) {
		return Action(a)
	}
	return OtherAction
}

func stateOf(id StringID) State {
	if s := int(id) - firstState; s >= 0 && s < int(UnknownState) {
		return State(s)
	} else if s == int(UnknownState) {
		return Pending
	}
	return UnknownState
}

// A kind of record, by the keys that only it has.
type record uint8

const (
	rGeneric record = iota
	rEvent
	rFrame
	rBlock
	rSegment
	rHistory
	rAnnotation
)

var recordNames = [...]string{"snapshot", "trace entry", "frame", "block", "segment", "history entry", "annotation"}

// A keySet is a set of the keys above.
type keySet uint64

func bit(keys ...int) (m keySet) {
	for _, k := range keys {
		m |= 1 << k
	}
	return m
}

func (m keySet) has(k int) bool { return m>>k&1 != 0 }

func (m keySet) first() int { return bits.TrailingZeros64(uint64(m)) }

// columns are the keys that a record has columns for.
var columns = [...]keySet{
	rGeneric: 0,
	rEvent: bit(kAction, kAddr, kSize, kStream, kTimeUS, kFrames, kDeviceFree, kCompileContext, kUserMetadata,
		kPoolID, kCategory),
	rFrame: bit(kFilename, kLine, kName),
	rBlock: bit(kSize, kRequestedSize, kAddress, kState, kFrames, kHistory),
	rSegment: bit(kDevice, kAddress, kTotalSize, kAllocatedSize, kActiveSize, kRequestedSize, kStream, kSegmentType,
		kSegmentPoolID, kIsExpandable, kFrames, kBlocks),
	rHistory:    bit(kAddr, kRealSize, kFrames),
	rAnnotation: bit(kName, kStage, kDevice, kTimeUS),
}

// recordOf recognizes a record by its keys.
func recordOf(mask keySet) record {
	has := func(keys ...int) bool { m := bit(keys...); return mask&m == m }
	switch {
	case mask&(1<<kSegments|1<<kDeviceTraces) != 0: // the top level, whatever its user added
		return rGeneric
	case mask.has(kAction):
		return rEvent
	case has(kFilename, kName):
		return rFrame
	case has(kTotalSize) || has(kBlocks, kDevice):
		return rSegment
	case has(kState, kSize):
		return rBlock
	case has(kStage, kName):
		return rAnnotation
	case has(kRealSize):
		return rHistory
	}
	return rGeneric
}
