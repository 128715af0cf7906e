/// Control.
