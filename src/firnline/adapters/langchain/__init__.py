"""LangChain 1.x and LangGraph: middleware, retrieval, a store, a summarizer.

Needs ``firnline[langchain]``.
"""

from firnline.adapters import missing_extra

try:
    from firnline.adapters.langchain.middleware import FirnlineMiddleware
    from firnline.adapters.langchain.retrieval import BudgetedRetriever
    from firnline.adapters.langchain.store import FirnlineStore
    from firnline.adapters.langchain.summarizer import summarizer
except ModuleNotFoundError as error:
    raise missing_extra("langchain", error) from error

__all__ = ["BudgetedRetriever", "FirnlineMiddleware", "FirnlineStore", "summarizer"]
