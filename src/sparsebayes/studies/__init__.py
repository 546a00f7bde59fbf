"""Tables and figures of the papers, as runnable studies on the public interface."""
