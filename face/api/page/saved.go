package page

// Held is what a saved page holds of a device. The page reads it.
type Held struct {
	Events   []int            `json:"events"`   // at which the cursor can stand
	Stations []int            `json:"stations"` // those of them with the allocator's state and stacks
	Next     map[string][]int `json:"next"`     // events to go to, by kind
	Levels   map[string]int   `json:"levels"`   // finest level, by axis and grouping
	Near     []Stretch        `json:"near"`     // finer ones, by line over events
	Alone    []string         `json:"alone"`    // what can be shown alone, by line over events
	Text     string           `json:"text"`
}

// A Stretch is where a finer level is held: events From to To-1.
type Stretch struct {
	Level int `json:"level"`
	From  int `json:"from"`
	To    int `json:"to"`
}
